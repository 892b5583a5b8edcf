//! What whoever writes a `Wordpress` should know.

use kubewright::webhook::{Change, Denied, Review, Warnings};

use crate::kind::Wordpress;

/// Warns of a password that everybody can read. That there is one at all is the schema's to say.
pub(crate) fn judge(change: Change<'_, Wordpress>, _: &Review) -> Result<Warnings, Denied> {
    let (Change::Create(site) | Change::Update { new: site, .. }) = change else {
        return Ok(Warnings::new());
    };
    let spec = &site.spec;
    Ok(match (&spec.sqlrootpassword, &spec.sql_root_password_secret_ref) {
        (None, _) => Warnings::new(),
        (Some(_), None) => vec![
            "spec.sqlrootpassword: everybody who can read this object can read the password; put \
             it into a Secret, and its name into spec.sqlRootPasswordSecretRef"
                .to_owned(),
        ],
        (Some(_), Some(_)) => vec![
            "spec.sqlrootpassword: is not used beside spec.sqlRootPasswordSecretRef; remove it"
                .to_owned(),
        ],
    })
}
