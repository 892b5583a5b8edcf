use super::*;

const TABLE: &[Flag] = &[
    flag("port", Takes::One("int"), Effect::Heeded, "Where."),
    flag("allow-all", Takes::Switch, Effect::Heeded, ""),
    flag("modes", Takes::List("strings"), Effect::Heeded, ""),
    flag("issuer", Takes::Each("stringArray"), Effect::Heeded, ""),
    flag("wait", Takes::One("duration"), Effect::Heeded, ""),
    flag("gates", Takes::One("string"), Effect::Ignored("they are open"), ""),
    flag("secret", Takes::One("string"), Effect::Refused("keep it"), ""),
    flag("mark", Takes::Attached("mark"), Effect::Heeded, ""),
    flag("v", Takes::One("Level"), Effect::Heeded, ""),
    flag("idle", Takes::One("string"), Effect::Idle, ""),
];

fn read(dialect: Dialect, line: &str) -> Result<Given, FlagError> {
    parse(dialect, TABLE, &[('v', "v")], line.split_whitespace().map(str::to_owned).collect())
}

/// What a line gives, in the order of the table, or what is wrong with it.
fn check(dialect: Dialect, line: &str, expected: &str) {
    let text = match read(dialect, line) {
        Ok(given) => {
            let values = TABLE.iter().filter(|flag| given.has(flag.name));
            let values =
                values.map(|flag| format!("{}={}", flag.name, given.list(flag.name).join("|")));
            let others = given.rest.iter().chain(&given.warnings).cloned();
            Vec::from_iter(values.chain(others)).join(" ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(text, expected, "{line}");
}

#[test]
fn flags_are_read_as_kube_apiserver_reads_them() {
    let check = |line, expected| check(Dialect::Pflag, line, expected);
    check("--port=1 --port 2", "port=2");
    check("--allow_all --modes a,b --modes=c", "allow-all=true modes=a|b|c");
    check("--issuer a,b --issuer c", "issuer=a,b|c");
    check("--allow-all false", "allow-all=true false");
    check("-v4 --idle x", "v=4 idle=x");
    check("-v=4 -- --port", "v=4 --port");
    check("--gates A=true", "gates=A=true --gates makes no difference here: they are open");
    check("--secret=", "secret=");
    check("--mark x", "mark=true x");
    check("--mark=x", "mark=x");
}

#[test]
fn mistakes_are_told_as_kube_apiserver_tells_them() {
    let check = |line, expected| check(Dialect::Pflag, line, expected);
    check("--bogus=1", "unknown flag: --bogus");
    check("-x", "unknown shorthand flag: 'x' in -x");
    check("--port", "flag needs an argument: --port");
    check(
        "--allow-all=x",
        "invalid argument \"x\" for \"--allow-all\" flag: strconv.ParseBool: parsing \"x\": \
         invalid syntax",
    );
    check("--secret=x", "--secret is not supported here: keep it");
    let given = read(Dialect::Pflag, "--port x --wait 5").expect("read");
    assert_eq!(
        given.number(Dialect::Pflag, "port").expect_err("no number").to_string(),
        "invalid argument \"x\" for \"--port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
    );
    assert!(given.duration(Dialect::Pflag, "wait").is_err());
}

#[test]
fn flags_are_read_as_etcd_reads_them() {
    let check = |line, expected| check(Dialect::Go, line, expected);
    check("-port 1 --idle=x", "port=1 idle=x");
    check("-allow-all word --port 1", "allow-all=true word --port 1");
    check("--bogus", "flag provided but not defined: -bogus");
    check("--port", "flag needs an argument: -port");
    check("--allow-all=x", "invalid boolean value \"x\" for -allow-all: parse error");
}

#[test]
fn durations_are_gos() {
    let check = |text: &str, expected: Option<u64>| {
        assert_eq!(duration(text), expected.map(Duration::from_millis), "{text}");
    };
    check("0", Some(0));
    check("1h30m", Some(5_400_000));
    check("1.5s", Some(1500));
    check("20ms", Some(20));
    check("", None);
    check("5", None);
    check("5x", None);
}

#[test]
fn help_has_a_line_for_each_flag_that_is_taken() {
    let text = help(TABLE);
    let has = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    assert!(has("--port ") && has("--idle ") && has("--gates "));
    assert!(!has("--secret"), "whoever looks for it must not find it");
}
