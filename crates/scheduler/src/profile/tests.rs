//! Which plugins have a say where, as configuration says.

use super::*;
use crate::fixtures::profile_of;

/// The plugins at a point, with weights where they count.
#[track_caller]
fn check(config: &str, point: Point, expected: &str) {
    let profile = profile_of(config);
    let names = profile.places(point).iter().map(|(place, weight)| match point {
        Point::Score => format!("{}={weight}", profile.name_of(*place)),
        _ => profile.name_of(*place).to_owned(),
    });
    assert_eq!(names.collect::<Vec<_>>().join(" "), expected);
}

#[track_caller]
fn check_error(config: &str, expected: &str) {
    let config: config::Profile =
        serde_json::from_value(kubewright_apimachinery::yaml::decode(config).expect("YAML").value)
            .expect("a profile");
    let made = Profile::new(&config, &Registry::builtin(), &Around::default());
    assert_eq!(made.err().map(|error| error.to_string()).as_deref(), Some(expected));
}

#[test]
fn by_default_plugins_are_upstreams() {
    check(
        "{}",
        Point::Filter,
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit \
         VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread \
         InterPodAffinity DynamicResources NodeDeclaredFeatures",
    );
    check(
        "{}",
        Point::Score,
        "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 PodTopologySpread=2 \
         InterPodAffinity=2 NodeResourcesBalancedAllocation=1 ImageLocality=1",
    );
    check("{}", Point::PreEnqueue, "SchedulingGates DefaultPreemption");
    check("{}", Point::Bind, "DefaultBinder");
}

#[test]
fn what_is_named_for_a_point_comes_first_and_counts_as_it_says() {
    check(
        "{plugins: {score: {enabled: [{name: ImageLocality, weight: 9}], disabled: [{name: \
         NodeAffinity}, {name: VolumeBinding}]}}}",
        Point::Score,
        "ImageLocality=9 TaintToleration=3 NodeResourcesFit=1 PodTopologySpread=2 \
         InterPodAffinity=2 NodeResourcesBalancedAllocation=1",
    );
    check(
        "{plugins: {filter: {disabled: [{name: '*'}], enabled: [{name: NodeName}]}}}",
        Point::Filter,
        "NodeName",
    );
}

#[test]
fn what_is_said_of_all_points_holds_everywhere() {
    let config = "{plugins: {multiPoint: {disabled: [{name: PodTopologySpread}, {name: \
                  InterPodAffinity}], enabled: [{name: TaintToleration, weight: 8}, {name: NodeLabel}]}}}";
    check(
        config,
        Point::Score,
        "TaintToleration=8 NodeAffinity=2 NodeResourcesFit=1 VolumeBinding=1 \
         NodeResourcesBalancedAllocation=1 ImageLocality=1 NodeLabel=1",
    );
    check(
        config,
        Point::Filter,
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit \
         VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone DynamicResources \
         NodeDeclaredFeatures NodeLabel",
    );
}

#[test]
fn what_cannot_be_is_refused() {
    check_error(
        "{plugins: {score: {enabled: [{name: NodeName}]}}}",
        "plugins: plugin \"NodeName\" does not extend Score plugin",
    );
    check_error(
        "{plugins: {filter: {enabled: [{name: Mine}]}}}",
        "plugins: \"Mine\" does not exist",
    );
    check_error(
        "{schedulerName: s, plugins: {bind: {disabled: [{name: '*'}]}}}",
        "plugins.bind: at least one bind plugin is needed for profile with scheduler name \"s\"",
    );
    check_error(
        "{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}",
        "hardPodAffinityWeight: not in valid range [0-100]",
    );
    check_error(
        "{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: System, \
         defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}}]}",
        "defaultingType: when .defaultingType is System, .defaultConstraints must be empty",
    );
}
