//! Modules with their functions and classes, read from `modules.txt`.

use std::sync::LazyLock;

use crate::table::{Release, Subs, Type, rows};

/// The name of the module in the table that holds the functions of the language itself.
pub const BUILTIN_MODULE: &str = "builtin";

/// A module.
#[derive(Debug)]
pub struct Module {
    /// The name.
    pub name: &'static str,
    /// The module in one sentence.
    pub text: &'static str,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Its classes.
    pub classes: Vec<Class>,
}

/// A class: `new NAME = MODULE.CLASS(…);` makes an object of it.
#[derive(Debug)]
pub struct Class {
    /// The name.
    pub name: &'static str,
    /// The constructor.
    pub constructor: Function,
    /// The methods.
    pub methods: Vec<Function>,
}

/// A function, a method or a constructor.
#[derive(Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The type of its value.
    pub result: Type,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// The subs that may call it.
    pub subs: Subs,
    /// The versions that have it.
    pub release: Release,
    /// The parameters as written in the table.
    pub signature: &'static str,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The name, if it has one.
    pub name: Option<&'static str>,
    /// The type.
    pub kind: Type,
    /// The words of an ENUM.
    pub words: Vec<&'static str>,
    /// Whether the argument may be left out.
    pub is_optional: bool,
    /// The default, if it has one.
    pub default: Option<&'static str>,
}

impl Module {
    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }
}

impl Class {
    /// The method of this name.
    pub fn method(&self, name: &str) -> Option<&Function> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// All modules, the functions of the language itself first.
pub fn modules() -> &'static [Module] {
    static MODULES: LazyLock<Vec<Module>> = LazyLock::new(|| read_modules(include_str!("modules.txt")));
    &MODULES
}

/// The module of this name.
pub fn module(name: &str) -> Option<&'static Module> {
    modules().iter().find(|module| module.name == name)
}

/// # Panics
/// If a row is not of the form that the head of the table describes.
fn read_modules(text: &'static str) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for row in rows(text) {
        if let Some(rest) = row.strip_prefix("module ") {
            let (name, text) = rest.split_once(" | ").expect("a name and a text");
            modules.push(Module { name, text, functions: Vec::new(), classes: Vec::new() });
            continue;
        }
        let module = modules.last_mut().expect("a module before its functions");
        if let Some(rest) = row.strip_prefix("object ") {
            let constructor = function(Type::Void, rest);
            module.classes.push(Class { name: constructor.name, constructor, methods: Vec::new() });
            continue;
        }
        let (result, rest) = row.split_once(' ').expect("a result and a name");
        let result = Type::named(result).expect("a type");
        match rest.strip_prefix('.') {
            Some(rest) => {
                let class = module.classes.last_mut().expect("a class before its methods");
                class.methods.push(function(result, rest));
            }
            None => module.functions.push(function(result, rest)),
        }
    }
    modules
}

/// The function of `NAME(PARAMETERS) @ SUBS ! LIMIT`.
fn function(result: Type, text: &'static str) -> Function {
    let open = text.find('(').expect("parameters");
    let close = text.rfind(')').expect("the end of the parameters");
    let signature = &text[open + 1..close];
    let rest = &text[close + 1..];
    let (rest, limit) = rest.split_once('!').unwrap_or((rest, ""));
    let subs = rest.trim().strip_prefix('@').map_or(Subs::ALL, Subs::named);
    let release = match limit.trim() {
        "" => Release::Both,
        "8" => Release::From8,
        "9" => Release::From9,
        "old" => Release::Until7,
        other => panic!("no limit of versions: {other}"),
    };
    let parameters = split_parameters(signature).into_iter().map(parameter).collect();
    Function { name: &text[..open], result, parameters, subs, release, signature }
}

/// The parts between commas that stand neither in braces nor in quotes.
fn split_parameters(text: &'static str) -> Vec<&'static str> {
    let (mut parts, mut start, mut is_within) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => is_within = true,
            b'}' => is_within = false,
            b'"' => is_within = !is_within,
            b',' if !is_within => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The parameter of `TYPE NAME=DEFAULT`, all but the type optional, in brackets if it may be left out.
fn parameter(text: &'static str) -> Parameter {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (text, is_bracketed) = (inner.unwrap_or(text), inner.is_some());
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let kind = Type::named(kind).unwrap_or_else(|| panic!("no type: {kind}"));
    let (words, rest) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((words, rest)) => (words.split(',').map(str::trim).collect(), rest.trim()),
        None => (Vec::new(), rest.trim()),
    };
    let (name, default) = match rest.split_once('=') {
        Some((name, default)) => (name, Some(default)),
        None => (rest, None),
    };
    let name = Some(name).filter(|name| !name.is_empty());
    Parameter { name, kind, words, is_optional: is_bracketed || default.is_some(), default }
}
