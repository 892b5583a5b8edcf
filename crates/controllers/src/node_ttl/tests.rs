use super::*;

#[test]
fn steps_overlap() {
    let seconds = |counts: &[usize]| {
        let steps = counts.iter().scan(0, |step, count| {
            *step = next(*step, *count);
            Some(STEPS[*step].2)
        });
        steps.collect::<Vec<_>>()
    };
    assert_eq!(seconds(&[1, 100, 101, 95, 89]), [0, 0, 15, 15, 0]);
    assert_eq!(seconds(&[5000, 1900, 1799, 10]), [300, 300, 60, 0]);
}
