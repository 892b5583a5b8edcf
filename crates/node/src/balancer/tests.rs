use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::affinity::Turns;
use super::table::Behind;
use super::*;

fn read<T: DeserializeOwned>(text: &str) -> Arc<T> {
    let value = yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    Arc::new(serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}")))
}

fn table() -> Table {
    let services = [read(
        "metadata: {name: web, namespace: d}
spec:
  clusterIPs: [10.0.0.99, 'fd00::1']
  ports: [{name: http, port: 80, nodePort: 30080}, {name: dns, port: 53, protocol: UDP, nodePort: 30053}]",
    )];
    let slices = [
        read(
            "metadata: {name: web-1, namespace: d, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.0.0.2], conditions: {ready: true}}, \
            {addresses: [10.0.0.1]}, {addresses: [10.0.0.3], conditions: {ready: false}}]",
        ),
        read(
            "metadata: {name: web-2, namespace: other, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 1}]
endpoints: [{addresses: [10.9.9.9]}]",
        ),
    ];
    let ingresses = [
        read(
            "metadata: {name: any, namespace: d}
spec: {rules: [{http: {paths: [{path: /hello, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]}",
        ),
        read(
            "metadata: {name: named, namespace: d}
spec:
  rules:
  - host: app.example.com
    http: {paths: [
      {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}},
      {path: /only, pathType: Exact, backend: {service: {name: none, port: {number: 80}}}}]}
  - host: '*.example.com'
    http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}",
        ),
    ];
    Table::of(&services, &slices, &ingresses, &[])
}

#[test]
fn the_api_server_is_where_this_machine_reaches_it() {
    let server = |name: &str, namespace: &str| {
        read::<Service>(&format!(
            "metadata: {{name: {name}, namespace: {namespace}}}
spec: {{clusterIPs: [10.0.0.1], ports: [{{name: https, port: 443}}]}}"
        ))
    };
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, 6443));
    let check = |service: Arc<Service>, expected: Vec<SocketAddr>| {
        let services = [service];
        let mut table = Table::of(&services, &[], &[], &[]);
        table.place_server(&services, place);
        assert_eq!(table.fronts.into_values().collect::<Vec<_>>(), [Behind::only(expected)]);
    };
    check(server("kubernetes", "default"), vec![place]);
    check(server("kubernetes", "other"), Vec::new());
    check(server("web", "default"), Vec::new());
}

#[test]
fn ports_and_addresses_of_services_lead_to_pods_that_are_ready() {
    let mut table = table();
    table.reach(|shown| match shown.to_string().as_str() {
        "10.0.0.2:8080" => (Ipv4Addr::LOCALHOST, 18080).into(),
        _ => shown,
    });
    let fronts = table.fronts.iter().map(|(front, to)| {
        let place = match front.place {
            Place::Node => "node".to_owned(),
            Place::Host(ip) => format!("host {ip}"),
            Place::Service(ip) => ip.to_string(),
        };
        format!("{place}:{} {:?} -> {:?}", front.port, front.protocol, to.all)
    });
    let ready = "[10.0.0.1:8080, 127.0.0.1:18080]";
    let expected = [
        format!("node:30080 Tcp -> {ready}"),
        "node:30053 Udp -> []".to_owned(),
        format!("10.0.0.99:80 Tcp -> {ready}"),
        "10.0.0.99:53 Udp -> []".to_owned(),
    ];
    assert_eq!(fronts.collect::<Vec<_>>(), expected);
}

#[test]
fn pods_have_the_ports_of_the_machine_that_they_want() {
    let pod = |spec: &str, status: &str| {
        read::<Pod>(&format!("{{metadata: {{name: p}}, spec: {{{spec}}}, status: {{{status}}}}}"))
    };
    let up = "phase: Running, podIP: 198.18.0.9";
    let check = |spec: &str, status: &str, expected: &[&str]| {
        let mut table = table();
        let before = table.fronts.clone();
        table.place_host_ports(&[pod(spec, status)]);
        table.fronts.retain(|front, _| !before.contains_key(front));
        let found = table.fronts.iter().map(|(Front { place, protocol, port }, to)| {
            format!("{place:?} {port} {protocol:?} -> {:?}", to.all)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{spec} {status}");
    };
    let ports = "containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}, \
                 {containerPort: 53, hostPort: 5353, protocol: UDP, hostIP: 127.0.0.2}, \
                 {containerPort: 90}]}]";
    let both = ["Node 8080 Tcp -> [198.18.0.9:80]", "Host(127.0.0.2) 5353 Udp -> [198.18.0.9:53]"];
    check(ports, up, &both);
    check(ports, "phase: Pending", &[]);
    check(ports, "phase: Succeeded, podIP: 198.18.0.9", &[]);
    check(&format!("hostNetwork: true, {ports}"), up, &[]);
    let taken = "containers: [{name: a, ports: [{containerPort: 80, hostPort: 30080}]}]";
    check(taken, up, &[]);
}

#[tokio::test]
async fn datagrams_go_to_a_pod_and_answers_back() {
    let pod = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let behind = pod.local_addr().expect("an address");
    let free = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let place = free.local_addr().expect("an address");
    drop(free);
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(udp::serve(place, move || Behind::only(vec![behind]), stop.clone()));
    let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    client.connect(place).await.expect("an address");
    let mut heard = [0; 16];
    // It may not listen yet.
    let asked = loop {
        let _ = client.send(b"who").await;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(50), async {
            pod.recv_from(&mut heard).await.expect("a datagram")
        });
        if let Ok(asked) = waiting.await {
            break asked;
        }
    };
    assert_eq!(&heard[..asked.0], b"who");
    pod.send_to(b"me", asked.1).await.expect("sent");
    let length = client.recv(&mut heard).await.expect("an answer");
    assert_eq!(&heard[..length], b"me");
    stop.cancel();
    tasks.join_next().await.expect("a task").expect("no panic").expect("it listened");
}

/// Who stands behind each place of a Service with these policies, on the node `here`.
fn check_policy(policies: &str, endpoints: &str, expected: &[&str]) {
    let services = [read(&format!(
        "metadata: {{name: web, namespace: d}}
spec: {{clusterIPs: [10.0.0.99], ports: [{{port: 80, nodePort: 30080}}], {policies}}}"
    ))];
    let slices = [read(&format!(
        "metadata: {{name: web-1, namespace: d, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{port: 80}}]
endpoints: [{endpoints}]"
    ))];
    let table = Table::of(&services, &slices, &[], &["here".to_owned()]);
    let told = table.fronts.iter().map(|(front, behind)| {
        let client = IpAddr::from([192, 0, 2, 1]);
        let last = |all: &[SocketAddr]| -> Vec<String> {
            all.iter()
                .map(|it| it.ip().to_string().rsplit('.').next().unwrap_or("").to_owned())
                .collect()
        };
        let place = IpAddr::from([192, 0, 2, 9]);
        let (from_here, from_there) =
            (behind.for_client(place, place), behind.for_client(client, place));
        let front = if front.place == Place::Node { "node" } else { "address" };
        format!("{front}: here {}, there {}", last(from_here).join(" "), last(from_there).join(" "))
    });
    assert_eq!(told.collect::<Vec<_>>(), expected, "{policies} {endpoints}");
}

#[test]
fn policies_keep_what_comes_on_this_machine() {
    let both = "{addresses: [10.0.0.1], nodeName: here}, {addresses: [10.0.0.2], nodeName: there}";
    check_policy("", both, &["node: here 1 2, there 1 2", "address: here 1 2, there 1 2"]);
    check_policy(
        "externalTrafficPolicy: Local",
        both,
        &["node: here 1 2, there 1", "address: here 1 2, there 1 2"],
    );
    check_policy(
        "internalTrafficPolicy: Local",
        both,
        &["node: here 1 2, there 1 2", "address: here 1, there 1"],
    );
    let elsewhere = "{addresses: [10.0.0.2], nodeName: there}";
    check_policy(
        "externalTrafficPolicy: Local, internalTrafficPolicy: Local",
        elsewhere,
        &["node: here 2, there ", "address: here , there "],
    );
}

#[test]
fn pods_that_are_ending_serve_when_nobody_else_does() {
    let leaving = "conditions: {ready: false, serving: true, terminating: true}";
    let gone = "conditions: {ready: false, serving: false, terminating: true}";
    let ending = format!(
        "{{addresses: [10.0.0.1], nodeName: here, {leaving}}}, \
         {{addresses: [10.0.0.2], nodeName: there, {leaving}}}, \
         {{addresses: [10.0.0.3], nodeName: there, {gone}}}"
    );
    check_policy("", &ending, &["node: here 1 2, there 1 2", "address: here 1 2, there 1 2"]);
    let with_ready = format!("{ending}, {{addresses: [10.0.0.4], nodeName: there}}");
    check_policy("", &with_ready, &["node: here 4, there 4", "address: here 4, there 4"]);
    check_policy(
        "externalTrafficPolicy: Local",
        &with_ready,
        &["node: here 4, there 1", "address: here 4, there 4"],
    );
}

#[test]
fn a_client_is_led_to_the_same_pod_where_its_service_wants_it_so() {
    let one = |last| SocketAddr::from(([10, 0, 0, last], 80));
    let (all, rest) = ([one(1), one(2), one(3)], [one(1), one(3)]);
    let (affinity, start) = (Some(Duration::from_secs(10)), tokio::time::Instant::now());
    let at = |second| start + Duration::from_secs(second);
    let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let mut turns = Turns::default();
    assert_eq!([turns.take(a, &all, None, start), turns.take(a, &all, None, start)], [0, 1]);
    assert_eq!(turns.take(a, &all, affinity, at(0)), 2);
    assert_eq!(turns.take(b, &all, affinity, at(1)), 0);
    // Each time it comes it is known for as long again.
    assert_eq!(turns.take(a, &all, affinity, at(9)), 2);
    assert_eq!(turns.take(a, &all, affinity, at(18)), 2);
    assert_eq!(turns.take(a, &all, affinity, at(28)), 1);
    // The pod that it was led to has gone.
    assert_eq!(turns.take(a, &rest, affinity, at(29)), 1);
    assert_eq!(turns.take(a, &[], affinity, at(30)), 0);
}

#[test]
fn requests_go_by_host_and_path() {
    let table = table();
    let check = |host: &str, path: &str, expected: Option<usize>| {
        let found = table.route(host, path).map(|route| route.backends.len());
        assert_eq!(found, expected, "{host}{path}");
    };
    check("localhost:8080", "/hello", Some(2));
    check("localhost:8080", "/hello/there", Some(2));
    check("localhost:8080", "/helloworld", None);
    check("localhost:8080", "/", None);
    check("app.example.com", "/anything", Some(2));
    check("app.example.com", "/only", Some(0));
    check("app.example.com", "/only/more", Some(2));
    check("other.example.com", "/x", Some(2));
    check("a.b.example.com", "/x", None);
}

/// A pod that answers every request with its name.
async fn pod(name: &'static str, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

/// A router that sends everything to these, as long as nobody tells it otherwise.
async fn route_all(
    backends: Vec<SocketAddr>,
    tasks: &mut JoinSet<()>,
) -> (SocketAddr, CancellationToken, watch::Sender<Arc<Table>>) {
    let route = table::Route { host: None, path: "/".to_owned(), is_exact: false, backends };
    let table = Table { routes: vec![route], ..Table::default() };
    let (tell, table) = watch::channel(Arc::new(table));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    tasks.spawn(router::run(listener, table, shutdown.clone()));
    (place, shutdown, tell)
}

/// WebSockets did not get through: the router took their wish for another protocol away.
#[tokio::test]
async fn the_router_passes_on_what_becomes_another_protocol() {
    let mut tasks = JoinSet::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let backends = vec![listener.local_addr().expect("an address")];
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.expect("a request");
        let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
        for expected in ["connection: upgrade\r\n", "upgrade: chat\r\n"] {
            assert!(request.contains(expected), "{request}");
        }
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.expect("it is sent");
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.expect("a word");
        stream.write_all(&word).await.expect("it is sent");
    });
    let (place, shutdown, _tell) = route_all(backends, &mut tasks).await;
    let mut client = TcpStream::connect(place).await.expect("it listens");
    let request = b"GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n";
    client.write_all(request).await.expect("it is sent");
    let mut answer: Vec<u8> = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let length = client.read_buf(&mut answer).await.expect("an answer");
        assert!(length > 0, "{}", String::from_utf8_lossy(&answer));
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    client.write_all(b"echo").await.expect("it is sent");
    let mut word = [0; 4];
    client.read_exact(&mut word).await.expect("an answer");
    assert_eq!(&word, b"echo");
    shutdown.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no panic");
    }
}

#[tokio::test]
async fn the_router_takes_pods_in_turn_and_passes_over_the_dead() {
    let mut tasks = JoinSet::new();
    let dead = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let gone = dead.local_addr().expect("an address");
    drop(dead);
    let backends = vec![pod("one", &mut tasks).await, gone, pod("two", &mut tasks).await];
    let (place, shutdown, _tell) = route_all(backends, &mut tasks).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let mut client = TcpStream::connect(place).await.expect("it listens");
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.write_all(request).await.expect("it is sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        answers.push(answer.rsplit("\r\n").next().unwrap_or_default().to_owned());
    }
    assert_eq!(answers, ["one", "two", "two"]);
    shutdown.cancel();
    tasks.shutdown().await;
}
