//! Parts of a cluster as processes of their own, each in the place of upstream's program: what is
//! started and stopped, given what its flags said.

pub mod apiserver;
pub mod etcd;
