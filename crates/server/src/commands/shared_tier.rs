//! The subcommand `shared`, and `purge --verify`.

use std::io::{self, Write};

use crate::admin::{AskShared, SharedContent, SharedEntry};
use crate::cli::{PurgeArgs, SharedArgs, SharedCommand, header};
use crate::commands::output::{json, table};
use crate::failure::Failure;
use crate::human::count;

/// `shared`.
pub fn shared(command: &SharedCommand) -> Result<(), Failure> {
    let (args, ask) = match command {
        SharedCommand::Get(args) => (args, AskShared::default()),
        SharedCommand::Delete(args) => (args, AskShared { remove: true, ..AskShared::default() }),
        SharedCommand::Where(args) => (args, AskShared { only_where: true, ..AskShared::default() }),
    };
    let ask = AskShared { url: args.url.clone(), fields: fields(args)?, ..ask };
    let content = args.process.client()?.shared(&ask)?;
    if args.json {
        return json(&content);
    }
    io::stdout().write_all(show(&content, ask.only_where).as_bytes())?;
    Ok(())
}

/// `purge --verify`.
pub(super) fn verify(args: &PurgeArgs) -> Result<(), Failure> {
    let client = args.process.client()?;
    let mut left = false;
    for url in &args.urls {
        let ask = AskShared { url: url.clone(), everywhere: true, ..AskShared::default() };
        let content = client.shared(&ask)?;
        left |= content.objects > 0 || content.entries.iter().any(|entry| entry.used);
        match args.json {
            true => json(&content)?,
            false => io::stdout().write_all(show(&content, false).as_bytes())?,
        }
    }
    if left { Err(Failure::Failed("a request would still get it".to_owned())) } else { Ok(()) }
}

/// The fields of the request.
fn fields(args: &SharedArgs) -> Result<Vec<(String, String)>, Failure> {
    let field = |line: &String| header(line).map(|(name, value)| (name.to_owned(), value.to_owned()));
    args.headers.iter().map(field).collect()
}

fn show(content: &SharedContent, only_where: bool) -> String {
    let mut rows = Vec::new();
    if !only_where {
        rows.push(vec!["this node".to_owned(), count(content.objects, "object")]);
    }
    for entry in &content.entries {
        let SharedEntry { scheme, server, key, kind, why, response, .. } = entry;
        let mut what = vec![key.clone()];
        if !only_where {
            what.extend(kind.iter().cloned());
            what.extend(response.iter().cloned());
            what.push(why.clone());
        }
        rows.push(vec![server.clone(), format!("{scheme}: {}", what.join("; "))]);
    }
    table(&rows, 0)
}
