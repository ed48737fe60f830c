//! FastCGI to the backends of a pool: which script a request runs, the parameters that describe the request, the
//! output of the application, and the connections kept between requests.

mod application;
mod idle;
mod output;
mod request;
mod script;
mod stderr_rate;

pub(crate) use application::Application;
pub(crate) use idle::{PATIENCE, WaitsForAnswer};
pub(crate) use output::{Next, Output};
pub(crate) use request::{CgiRequest, encode};
