use super::*;

const SIZE: usize = 3;

/// Slices as `name=a b c`, one to a line; a name that ends in `*` has other labels than it should.
fn slices(text: &str) -> Vec<EndpointSlice> {
    let slice = |line: &str| {
        let (name, endpoints) = line.split_once('=').expect("a name");
        let mut slice = EndpointSlice { endpoints: Some(Vec::new()), ..EndpointSlice::default() };
        slice.metadata.name = Some(name.to_owned());
        wanted(endpoints).fill(&mut slice, SIZE);
        slice
    };
    text.lines().map(|line| slice(line.trim())).collect()
}

fn wanted(endpoints: &str) -> Wanted {
    let mut wanted = Wanted::default();
    endpoints.split_whitespace().map(endpoint).for_each(|endpoint| wanted.insert(endpoint));
    wanted
}

/// An endpoint as `address` or `address@node`.
fn endpoint(text: &str) -> Endpoint {
    let (address, node) = text.split_once('@').map_or((text, None), |(at, node)| (at, Some(node)));
    Endpoint {
        addresses: vec![address.to_owned()],
        node_name: node.map(str::to_owned),
        ..Endpoint::default()
    }
}

fn print(verb: &str, slices: &[EndpointSlice]) -> Vec<String> {
    let print = |slice: &EndpointSlice| {
        let endpoint = |endpoint: &Endpoint| match &endpoint.node_name {
            Some(node) => format!("{}@{node}", endpoint.addresses[0]),
            None => endpoint.addresses[0].clone(),
        };
        let all: Vec<String> = endpoints(slice).iter().map(endpoint).collect();
        format!("{verb} {}={}", text(&slice.metadata.name), all.join(" "))
    };
    slices.iter().map(print).collect()
}

#[track_caller]
fn check(existing: &str, wanted: &str, expected: &[&str]) {
    let existing = slices(existing);
    let existing: Vec<&EndpointSlice> = existing.iter().collect();
    let wanted = self::wanted(wanted);
    let adapt = |slice: &mut EndpointSlice| text(&slice.metadata.name).ends_with('*');
    let changes = pack(&existing, wanted, SIZE, adapt, EndpointSlice::default);
    let printed = [
        print("create", &changes.create),
        print("update", &changes.update),
        print("delete", &changes.delete),
    ];
    assert_eq!(printed.concat(), expected);
}

#[test]
fn what_is_in_place_stays() {
    check("x=1 2\ny=3", "3 2 1", &[]);
}

#[test]
fn new_endpoints_fill_new_slices() {
    check("", "1 2 3 4", &["create =1 2 3", "create =4"]);
}

#[test]
fn a_slice_that_changes_anyway_is_filled_first() {
    check("x=1 2\ny=3 4", "1 3 4 5 6", &["update x=1 5 6"]);
}

#[test]
fn the_fullest_slice_with_room_for_all_is_filled_next() {
    check("x=1\ny=2 3", "1 2 3 4", &["update y=2 3 4"]);
    check("x=1\ny=2 3", "1 2 3 4 5", &["update x=1 4 5"]);
    check("x=1 2\ny=3 4", "1 2 3 4 5 6", &["create =5 6"]);
}

#[test]
fn a_slice_that_nothing_is_left_of_goes() {
    check("x=1 2\ny=3", "3", &["delete x=1 2"]);
}

#[test]
fn an_endpoint_that_changes_stays_where_it_is() {
    check("x=1 2@a\ny=3", "1 2@b 3", &["update x=1 2@b"]);
}

#[test]
fn other_labels_are_a_reason_to_write() {
    check("x*=1", "1", &["update x*=1"]);
}

#[test]
fn slices_that_would_go_become_those_that_come() {
    let slice = |name: &str, family: &str| {
        let mut slice =
            EndpointSlice { address_type: family.to_owned(), ..EndpointSlice::default() };
        slice.metadata.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        slice
    };
    let mut changes = Changes {
        create: vec![slice("", "IPv4"), slice("", "IPv6")],
        update: Vec::new(),
        delete: vec![slice("strange", "IPv4"), slice("a", "IPv4"), slice("b", "IPv4")],
    };
    changes.recycle(|slice| text(&slice.metadata.name) != "strange");
    assert_eq!(print("create", &changes.create), ["create ="]);
    assert_eq!(changes.create[0].address_type, "IPv6");
    assert_eq!(print("update", &changes.update), ["update a="]);
    assert_eq!(print("delete", &changes.delete), ["delete strange=", "delete b="]);
}
