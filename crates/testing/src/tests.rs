//! The library's parts on a real server: they may not know it, so their tests are here.

mod controllers;
mod informers;
mod manifests;
mod operators;
