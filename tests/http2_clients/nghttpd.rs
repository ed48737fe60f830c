//! nghttpd as a backend.

use std::ffi::OsString;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use sandarac_test_support::{Port, Setup, TempDir, within};

use crate::{page, run};

/// nghttpd with a directory of files. It sends back what is posted. Stopped when dropped.
struct Nghttpd {
    server: Child,
    port: Port,
    dir: TempDir,
}

impl Nghttpd {
    fn start() -> Nghttpd {
        let (port, dir) = (Port::new(), TempDir::new());
        // Debian has it where only daemons are.
        let mut path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin"));
        path.push(":/usr/sbin");
        let mut command = Command::new("nghttpd");
        command.env("PATH", path).args(["--no-tls", "--echo-upload", "--address", "127.0.0.1", "--htdocs"]);
        command.arg(dir.path()).arg(port.address().port().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().expect("nghttpd, of nghttp2-server");
        let mut nghttpd = Nghttpd { server, port, dir };
        within("nghttpd to listen", || {
            let ended = nghttpd.server.try_wait().ok().flatten();
            assert!(ended.is_none(), "nghttpd ended: {ended:?}");
            TcpStream::connect(nghttpd.port.address()).ok()
        });
        nghttpd
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn files_and_uploads_pass_between_clients_and_nghttpd_whole() {
    let nghttpd = Nghttpd::start();
    let sizes = [0, 1 << 10, 1 << 20];
    std::fs::create_dir(nghttpd.dir.join("pass")).unwrap();
    for size in sizes {
        for path in ["", "pass/"] {
            std::fs::write(nghttpd.dir.join(&format!("{path}{size}")), page(size)).unwrap();
        }
    }
    let upload = nghttpd.dir.join("upload");
    std::fs::write(&upload, page(300_000)).unwrap();
    let upload = format!("@{}", upload.display());
    let proxy = Setup::new(env!("CARGO_BIN_EXE_sandarac"))
        .config(format!(
            "threads = 1\n\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp2 = true\n\n\
             [pool.app]\nbackends = [\"h2://{}\"]\n\n\
             [[route]]\nmatch = \"/pass/\"\npool = \"app\"\ncache = \"pass\"\n\n\
             [[route]]\npool = \"app\"\n",
            nghttpd.port.address()
        ))
        .start();
    let base = format!("http://{}", proxy.address());
    for how in ["--http1.1", "--http2-prior-knowledge"] {
        let curl = |rest: &[&str]| run("curl", &[&["-sS", "--fail", "--noproxy", "*", how], rest].concat());
        for size in sizes {
            for path in ["", "pass/"] {
                assert!(curl(&[&format!("{base}/{path}{size}")]) == page(size), "{how} {path}{size}");
            }
        }
        assert!(curl(&["--data-binary", &upload, &format!("{base}/echo")]) == page(300_000), "{how}");
    }
    // Each file for the cache and past it, once more past it, and the uploads.
    assert_eq!(proxy.metric("fetches"), 3 + 3 + 3 + 2);
    assert_eq!(proxy.metric("origin_connections"), 1);
}
