//! Writes the manual pages and the completions of `sandarac` into a directory, from the definitions of its
//! command line and its settings.

mod settings;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::CommandFactory;
use clap_complete::Shell;
use sandarac_server::cli::Cli;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        return Err("usage: sandarac-pages DIRECTORY".into());
    };
    write(&directory)
}

/// Writes `man/*.1`, `man/sandarac.toml.5` and `completions/*` below a directory.
fn write(directory: &Path) -> Result<(), Box<dyn Error>> {
    let [pages, completions] = ["man", "completions"].map(|name| directory.join(name));
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Cli::command(), &pages)?;
    fs::write(pages.join("sandarac.toml.5"), settings::page(&sandarac_config::manual()))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "sandarac", &completions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_its_completions() {
        let directory = env::temp_dir().join(format!("sandarac-pages-{}", std::process::id()));
        write(&directory).unwrap();
        let mut expected = vec!["man/sandarac.1".to_owned(), "man/sandarac.toml.5".to_owned()];
        expected.extend(
            Cli::command().get_subcommands().map(|command| format!("man/sandarac-{}.1", command.get_name())),
        );
        expected.extend(
            ["_sandarac", "sandarac.bash", "sandarac.fish"].map(|name| format!("completions/{name}")),
        );
        for name in expected {
            let text =
                fs::read_to_string(directory.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(text.len() > 100, "{name}: {text:?}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
