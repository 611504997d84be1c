use stoppable_scope::{Scope, Tree};

/// How many scopes below `scope` are alive: tasks, groups, timed calls and sections that have not ended.
///
/// 0 after everything that ran in it has ended: a leak check for a test.
///
/// # Examples
///
/// ```
/// use stoppable_scope::Scope;
/// use stoppable_test::live_scopes;
///
/// let app = Scope::named("app");
/// let import = app.child("import");
/// assert_eq!(live_scopes(&app), 1);
/// drop(import);
/// assert_eq!(live_scopes(&app), 0);
/// ```
pub fn live_scopes(scope: &Scope) -> usize {
    let tree = scope.tree();
    let mut rest: Vec<&Tree> = tree.children.iter().collect();
    // A scope that was entered from within another one hangs below both.
    let mut seen = std::collections::HashSet::new();
    while let Some(tree) = rest.pop() {
        if seen.insert(tree.id) {
            rest.extend(&tree.children);
        }
    }
    seen.len()
}
