use super::*;

fn check(steps: &str, expected: Value) {
    let id = Id { area: "area".to_owned(), name: "name".to_owned() };
    let text = format!("about: A claim.\nsteps:\n{steps}");
    let case = Case::parse(PathBuf::from("area/name.yaml"), id, &text).unwrap();
    assert_eq!(Value::from(case.recorded_requests()), expected);
}

#[test]
fn names_are_filled_in_from_the_cases_own() {
    check(
        "- request: DELETE /apis/{group}/v1/namespaces/{ns}/widgets/w",
        json!([{
            "method": "DELETE",
            "path": "/apis/name.area.kubewright.dev/v1/namespaces/area-name/widgets/w",
            "query": {},
            "type": "application/json",
            "accept": "application/json",
        }]),
    );
}

#[test]
fn what_the_server_chose_is_recorded_as_a_constant() {
    let step = "- request: PUT /x?a=b%20c\n  body: {v: '{rv}', u: '{uid}'}\n  note: kept";
    check(
        step,
        json!([{
            "method": "PUT",
            "path": "/x",
            "query": { "a": "b c" },
            "type": "application/json",
            "accept": "application/json",
            "body": { "v": RESOURCE_VERSION, "u": UID },
            "note": "kept",
        }]),
    );
}

#[test]
fn a_step_has_one_body_at_most() {
    let id = Id { area: "area".to_owned(), name: "name".to_owned() };
    let text = "about: A claim.\nsteps: [{request: POST /x, body: {}, text: ''}]";
    let error = Case::parse(PathBuf::new(), id, text).unwrap_err();
    assert_eq!(format!("{error:#}"), "step 1: only one of `body`, `text` and `base64`");
}
