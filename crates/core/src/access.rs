//! Who may do what, from the grants that somebody holds. It must never look a grant up or decide without one.

use courant_api::permission::{Permission, Resource};

/// One permission on one resource, as somebody holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// What may be done.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
}

impl Grant {
    fn names(&self, permission: Permission) -> bool {
        self.permission == Permission::All || self.permission == permission
    }

    fn covers(&self, resource: &Resource) -> bool {
        self.resource == Resource::Tenant || self.resource == *resource
    }
}

/// Whether the grants allow `permission` on `resource`: a grant counts on exactly its resource, and one on the
/// tenant counts on everything in it.
pub fn allows(grants: &[Grant], permission: Permission, resource: &Resource) -> bool {
    grants.iter().any(|grant| grant.names(permission) && grant.covers(resource))
}

/// Whether `permission` is held on anything at all: for lists, which then show only the rows that [`allows`] lets
/// through.
pub fn allows_any(grants: &[Grant], permission: Permission) -> bool {
    grants.iter().any(|grant| grant.names(permission))
}

#[cfg(test)]
mod tests {
    use courant_api::WorkspaceId;
    use uuid::Uuid;

    use super::*;

    fn resources() -> Vec<Resource> {
        vec![
            Resource::Tenant,
            Resource::Workspace(WorkspaceId(Uuid::from_u128(1))),
            Resource::Workspace(WorkspaceId(Uuid::from_u128(2))),
            Resource::NotificationIntegration("ops".into()),
            Resource::NotificationIntegration("ops-2".into()),
        ]
    }

    #[test]
    fn one_grant_allows_exactly_its_permission_on_its_resource_or_below_the_tenant() {
        for held in resources() {
            for &permission in Permission::LIST {
                let grants = [Grant { permission, resource: held.clone() }];
                for asked in resources() {
                    for &wanted in Permission::LIST {
                        let expected = (permission == Permission::All || permission == wanted)
                            && (held == Resource::Tenant || held == asked);
                        assert_eq!(allows(&grants, wanted, &asked), expected, "{grants:?} {wanted} on {asked}");
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_is_allowed_anything_without_a_grant() {
        assert!(!allows(&[], Permission::EventsRead, &Resource::Tenant));
        assert!(!allows_any(&[], Permission::EventsRead));
    }

    #[test]
    fn two_grants_do_not_add_up_to_a_third() {
        let grants = [
            Grant { permission: Permission::EventsRead, resource: Resource::NotificationIntegration("ops".into()) },
            Grant { permission: Permission::EventsAppend, resource: Resource::Tenant },
        ];
        assert!(!allows(&grants, Permission::EventsRead, &Resource::Tenant));
    }

    #[test]
    fn a_permission_on_one_row_is_held_on_something() {
        let row = Resource::NotificationIntegration("ops".into());
        let grants = [Grant { permission: Permission::NotificationIntegrationRead, resource: row.clone() }];
        assert!(allows_any(&grants, Permission::NotificationIntegrationRead));
        assert!(!allows_any(&grants, Permission::NotificationIntegrationUpdate));
        let everything = [Grant { permission: Permission::All, resource: row }];
        assert!(allows_any(&everything, Permission::NotificationIntegrationUpdate));
    }
}
