//! A browser as far as a login needs one: cookies and forms.

use sandarac_test_support::{Address, Conn, Req, Response, get, post};

/// Keeps the cookies it is given and sends them with every request, each of which has a connection of its own. A clone is
/// another window of the same person.
#[derive(Clone)]
pub(crate) struct Browser {
    address: Address,
    cookies: Vec<(String, String)>,
}

impl Browser {
    /// One without cookies, for the server at `address`.
    pub(crate) fn new(address: &Address) -> Browser {
        Browser { address: address.clone(), cookies: Vec::new() }
    }

    /// The same with a cookie that the server did not set.
    pub(crate) fn with_cookie(mut self, name: &str, value: &str) -> Browser {
        self.cookies.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The cookies it has, by name and value.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cookies.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Asks for `target`. Redirects are not followed.
    #[track_caller]
    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.exchange(get(target))
    }

    /// Sends a form to `target`.
    #[track_caller]
    pub(crate) fn post(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", percent_encoded(value))).collect();
        self.exchange(
            post(target, &pairs.join("&")).with("Content-Type", "application/x-www-form-urlencoded"),
        )
    }

    /// Sends a form with a file to `target`: its field, its name and its content.
    #[track_caller]
    pub(crate) fn upload(
        &mut self,
        target: &str,
        fields: &[(&str, &str)],
        (field, name, content): (&str, &str, &str),
    ) -> Response {
        const BOUNDARY: &str = "a-boundary-that-is-in-no-file";
        let mut body = String::new();
        for (name, value) in fields {
            body += &format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        body += &format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
             Content-Type: text/plain\r\n\r\n{content}\r\n--{BOUNDARY}--\r\n"
        );
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        self.exchange(post(target, &body).with("Content-Type", &kind))
    }

    #[track_caller]
    fn exchange(&mut self, request: Req) -> Response {
        let mut request = request.host(&self.address.to_string()).with("Connection", "close");
        if !self.cookies.is_empty() {
            let pairs: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.with("Cookie", &pairs.join("; "));
        }
        let response = Conn::to(&self.address).exchange(&request);
        for cookie in response.fields.all("set-cookie") {
            self.take(cookie);
        }
        response
    }

    /// Keeps a cookie (RFC 6265 §5.3), or drops the one of its name where its time is over. The path is always the whole site.
    fn take(&mut self, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie is a pair");
        self.cookies.retain(|(kept, _)| kept != name);
        if !parts.any(|attribute| attribute.eq_ignore_ascii_case("Max-Age=0")) {
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// The value of the input called `name` in a form.
///
/// # Panics
/// If `html` has none.
#[track_caller]
pub(crate) fn hidden_input(html: &str, name: &str) -> String {
    let attribute = format!("name=\"{name}\"");
    let input = html.split("<input ").skip(1).filter_map(|rest| rest.split_once('>')).map(|(input, _)| input);
    let value = input
        .filter(|input| input.contains(&attribute))
        .find_map(|input| Some(input.split_once("value=\"")?.1.split_once('"')?.0));
    value.unwrap_or_else(|| panic!("no input {name:?} in {html}")).replace("&amp;", "&")
}

/// `text` as a value of a form: every byte that is not a letter or a digit as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(byte.into());
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}
