//! Statements.

use crate::check::checker::Checker;
use crate::check::flow::{RequirementKind, SubCall};
use crate::check::rules;
use crate::check::symbols::SymbolKind;
use crate::diagnostic::Diagnostic;
use crate::table::{Access, Subs, Type};
use crate::tree::{Assignment, AssignmentOperator, Block, Name, New, Statement, StatementKind};

impl Checker<'_> {
    /// The statements of a block.
    pub(super) fn block(&mut self, block: &Block) {
        self.statements(&block.statements);
    }

    fn statements(&mut self, statements: &[Statement]) {
        for (at, statement) in statements.iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.statement(statement);
            if let (StatementKind::Return(end), Some(next)) = (&statement.kind, statements.get(at + 1))
                && !self.parsed.has_errors()
            {
                let last = statements.last().map_or(next.span, |last| last.span);
                let message = "this is never reached";
                self.report(
                    Diagnostic::new(&rules::UNREACHABLE, next.span.to(last), message)
                        .related(end.keyword, "the sub ends here"),
                );
                // One report for the whole rest.
                statements[at + 1..].iter().for_each(|statement| self.statement(statement));
                return;
            }
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Set(assignment) => self.assignment(assignment),
            StatementKind::Unset(unset) => {
                self.variable(&unset.target, Access::Unset);
            }
            StatementKind::Call(name) => self.call(name),
            StatementKind::If { branches, otherwise } => {
                for branch in branches {
                    self.value(&branch.condition, Type::Bool, "a condition");
                    self.block(&branch.block);
                }
                otherwise.iter().for_each(|branch| self.block(&branch.block));
            }
            StatementKind::Return(statement) => self.returned(statement),
            StatementKind::New(new) => self.new_object(new),
            StatementKind::Function(call) => self.called_statement(call),
            StatementKind::Unused(path) => self.symbols.mark_used(&path.text()),
            StatementKind::Block(block) => self.block(block),
            StatementKind::Include(include) => {
                include.parts.iter().for_each(|part| self.statements(&part.items));
            }
            StatementKind::InlineC => self.inline_c(statement.span),
            StatementKind::Old(_) | StatementKind::Invalid => {}
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        let Some(target) = self.variable(&assignment.target, Access::Set) else {
            self.expression(&assignment.value);
            return;
        };
        let name = self.short_text(assignment.target.span);
        let context = format!("`{name}`");
        match (assignment.operator, target) {
            (AssignmentOperator::Assign, Type::Header) => {
                self.value(&assignment.value, Type::String, &context);
            }
            (AssignmentOperator::Assign, Type::Body) => {
                self.body(&assignment.value, &context);
            }
            (AssignmentOperator::Add, Type::Body) => {
                self.value(&assignment.value, Type::String, &context);
            }
            (AssignmentOperator::Assign, _) => {
                self.value(&assignment.value, target, &context);
                if target == Type::Int && name.ends_with(".status") {
                    self.status(&assignment.value.kind, assignment.value.span);
                }
            }
            (AssignmentOperator::Add, Type::String | Type::Header) => {
                self.value(&assignment.value, Type::String, &context);
            }
            (
                AssignmentOperator::Add | AssignmentOperator::Subtract,
                Type::Int | Type::Duration | Type::Bytes | Type::Real,
            ) => {
                self.value(&assignment.value, target, &context);
            }
            (
                AssignmentOperator::Multiply | AssignmentOperator::Divide,
                Type::Duration | Type::Bytes | Type::Real,
            ) => {
                self.value(&assignment.value, Type::Real, &format!("the factor of {context}"));
            }
            (AssignmentOperator::Multiply | AssignmentOperator::Divide, Type::Int) => {
                self.value(&assignment.value, Type::Int, &format!("the factor of {context}"));
            }
            (_, target) => {
                self.expression(&assignment.value);
                let operator = self.text(assignment.operator_span);
                let message = format!("{context} is of type {target}, which has no `{operator}`");
                self.report(
                    Diagnostic::new(&rules::TYPE, assignment.operator_span, message)
                        .advice("assign with `=`"),
                );
            }
        }
    }

    fn call(&mut self, name: &Name) {
        let span = name.span;
        match self.symbols.get(&name.text).map(|symbol| (symbol.kind, symbol.span)) {
            Some((SymbolKind::Sub(callee), _)) => {
                self.symbols.mark_used(&name.text);
                self.sub_call(SubCall { callee, span });
            }
            Some((kind, defined)) => {
                self.symbols.mark_used(&name.text);
                let message = format!("`{}` is {}, not a sub", name.text, kind.described());
                self.report(Diagnostic::new(&rules::TYPE, span, message).related(defined, "defined here"));
            }
            None => {
                let message = format!("there is no sub `{}`", name.text);
                let diagnostic = Diagnostic::new(&rules::UNKNOWN_SYMBOL, span, message);
                let meant = self.symbols.closest(&name.text, |kind| matches!(kind, SymbolKind::Sub(_)));
                if meant.is_none() && !self.is_news(&name.text) {
                    return;
                }
                let diagnostic = match meant.and_then(|meant| Some((meant, self.symbols.get(meant)?))) {
                    Some((meant, symbol)) => {
                        self.symbols.mark_used(meant);
                        if let SymbolKind::Sub(callee) = symbol.kind {
                            self.sub_call(SubCall { callee, span });
                        }
                        diagnostic.related(symbol.span, "defined here").mend(
                            format!("did you mean `{meant}`?"),
                            span,
                            meant,
                        )
                    }
                    None => diagnostic.advice(format!("define it: `sub {} {{ … }}`", name.text)),
                };
                self.report(diagnostic);
            }
        }
    }

    /// Notes a call of a sub.
    pub(super) fn sub_call(&mut self, call: SubCall) {
        if let Some(sub) = self.sub {
            self.subs[sub].calls.push(call);
        }
    }

    fn new_object(&mut self, new: &New) {
        self.require(Subs::INIT, new.name.span, RequirementKind::New);
        let path = &new.constructor;
        let [module_name, class_name] = path.names.as_slice() else {
            let message = format!("`{}` is no class of a module", path.text());
            self.report(
                Diagnostic::new(&rules::UNKNOWN_FUNCTION, path.span, message)
                    .advice("write `new NAME = MODULE.CLASS(…);`"),
            );
            return;
        };
        let Some(module) = self.module_of(module_name, path) else {
            return;
        };
        match module.class(&class_name.text) {
            Some(class) => {
                let name = format!("{}.{}", module_name.text, class.name);
                self.arguments(&name, &class.constructor, &new.arguments);
            }
            None => {
                let names = module.classes.iter().map(|class| class.name);
                self.unknown_member(path, &module_name.text, class_name, "class", names);
                self.mark_uses(&new.arguments);
            }
        }
    }
}
