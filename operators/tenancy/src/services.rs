//! Which services outside the cluster there are: the arguments that say so.

use std::num::ParseFloatError;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::Uri;

use crate::service::Service;

/// Shorter than the ten seconds that the API server waits for the webhook.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The services outside the cluster.
#[derive(Debug, Clone, Args)]
pub struct Services {
    /// Who knows the users: asked with `GET URL/users/NAME`, answers 200 or 404. Without it,
    /// everybody is believed to exist
    #[arg(long, env = "TENANCY_IDENTITY_PROVIDER", value_name = "URL", global = true)]
    pub identity_provider: Option<Uri>,
    /// Whose certificates the identity provider may have [default: those that the machine believes]
    #[arg(long, value_name = "FILE", global = true)]
    pub identity_provider_ca: Option<PathBuf>,
    /// What becomes of changes while the identity provider does not answer
    #[arg(long, value_enum, default_value_t, global = true)]
    pub identity_provider_failure: OnFailure,
    /// Who is told that a namespace ends: `PUT URL/closures/UID`, once
    #[arg(long, env = "TENANCY_BILLING", value_name = "URL", global = true)]
    pub billing: Option<Uri>,
    /// Whose certificates billing may have [default: those that the machine believes]
    #[arg(long, value_name = "FILE", global = true)]
    pub billing_ca: Option<PathBuf>,
    /// How long either may take to answer
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "3", global = true)]
    pub service_timeout: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// They are refused: nobody becomes an administrator who may not exist
    #[default]
    Refuse,
    /// They are taken, with a warning
    Accept,
}

impl Services {
    /// The same, as arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let flag = |name: &str, value: Option<String>| value.map(|it| format!("--{name}={it}"));
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let failure = self.identity_provider_failure.to_possible_value();
        let failure = failure.filter(|_| self.identity_provider_failure != OnFailure::default());
        let timeout = (self.service_timeout != ANSWER_MAX).then_some(self.service_timeout);
        let flags = [
            flag("identity-provider", self.identity_provider.as_ref().map(Uri::to_string)),
            flag("identity-provider-ca", path(&self.identity_provider_ca)),
            flag("identity-provider-failure", failure.map(|it| it.get_name().to_owned())),
            flag("billing", self.billing.as_ref().map(Uri::to_string)),
            flag("billing-ca", path(&self.billing_ca)),
            flag("service-timeout", timeout.map(|it| it.as_secs_f64().to_string())),
        ];
        flags.into_iter().flatten().collect()
    }

    pub(crate) fn identity_provider(&self) -> Option<Service> {
        let url = self.identity_provider.clone()?;
        Some(Service::new(url, self.identity_provider_ca.clone(), self.service_timeout))
    }

    pub(crate) fn billing(&self) -> Option<Service> {
        let url = self.billing.clone()?;
        Some(Service::new(url, self.billing_ca.clone(), self.service_timeout))
    }
}

/// There are none.
impl Default for Services {
    fn default() -> Self {
        Services {
            identity_provider: None,
            identity_provider_ca: None,
            identity_provider_failure: OnFailure::default(),
            billing: None,
            billing_ca: None,
            service_timeout: ANSWER_MAX,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error: ParseFloatError| error.to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("say a time in seconds, as 3 or 0.5".to_owned()),
    }
}
