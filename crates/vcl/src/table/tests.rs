//! The tables are readable, consistent, and agree with the installed manual pages.

use super::*;

#[test]
fn all_rows_are_readable_and_their_texts_are_sentences() {
    assert!(variables().len() > 150);
    for variable in variables() {
        assert!(variable.text.ends_with('.'), "{variable:?}");
        assert!(!(variable.read | variable.set | variable.unset).is_empty(), "{variable:?}");
    }
    for module in modules() {
        assert!(module.text.ends_with('.'), "{}", module.name);
        assert!(absent_module(module.name).is_none(), "{} is provided", module.name);
        let methods = module.classes.iter().flat_map(|class| &class.methods);
        let constructors = module.classes.iter().map(|class| &class.constructor);
        for function in module.functions.iter().chain(methods).chain(constructors) {
            for parameter in &function.parameters {
                assert_eq!(parameter.words.is_empty(), parameter.kind != Type::Enum, "{function:?}");
            }
        }
    }
    assert!(absent_module("kvstore").is_some());
    for action in ACTIONS {
        assert!(!action.subs.is_empty(), "{action:?}");
    }
}

#[test]
fn a_name_is_found_by_itself_by_its_beginning_and_by_its_syntax() {
    use crate::dialect::Dialect::{V4_0, V4_1};
    let name = |name: &str| variable(name, V4_1).map(|variable| variable.name);
    assert_eq!(name("req.url"), Some("req.url"));
    assert_eq!(name("req.http.Host"), Some("req.http.*"));
    assert_eq!(name("req.http."), None);
    assert_eq!(name("storage.main.free_space"), Some("storage.<name>.free_space"));
    assert_eq!(name("storage..free_space"), None);
    assert_eq!(name("bereq.http.Content-Length"), Some("bereq.http.content-length"));
    assert_eq!(name("req.URL"), None);
    assert!(variable("req.proto", V4_0).is_some_and(|variable| variable.set == Subs::CLIENT));
    assert!(variable("req.proto", V4_1).is_some_and(|variable| variable.set.is_empty()));
    assert!(variable("req.esi", V4_1).is_some_and(|variable| variable.syntax == Some(V4_0)));
}

#[test]
fn sets_of_subs_are_named_by_their_groups() {
    assert_eq!(Subs::ALL.to_string(), "all subs");
    assert_eq!((Subs::HIT | Subs::DELIVER).to_string(), "`vcl_hit` and `vcl_deliver`");
    assert_eq!((Subs::PIPE | Subs::BACKEND).to_string(), "all `vcl_backend_*` and `vcl_pipe`");
    assert_eq!(Subs::NONE.to_string(), "no sub");
}
