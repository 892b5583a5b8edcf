//! How long it is waited before the runtime is asked again.

use super::*;

/// Who was about to wait when a container was stopped learned of its end a second later.
#[tokio::test(start_paused = true)]
async fn an_end_is_looked_for_at_once_whenever_it_comes() {
    let sightings = Sightings::default();
    let begin = Instant::now();
    let seen = |hurries| Moment { at: begin, hurries };
    sightings.hurry();
    sightings.until_worth_it(seen(0)).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    let half = EVERY / 2;
    let later = async {
        tokio::time::sleep(half).await;
        sightings.hurry();
    };
    tokio::join!(sightings.until_worth_it(seen(1)), later);
    assert_eq!(begin.elapsed(), half);
    // It was looked since.
    sightings.until_worth_it(seen(2)).await;
    assert_eq!(begin.elapsed(), EVERY);
}
