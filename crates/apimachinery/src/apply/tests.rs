//! Server-side apply against upstream's recorded answers, and by its laws.

mod hostile;
mod laws;
mod replay;
mod sets;
mod units;
