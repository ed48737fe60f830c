//! `X-Accel-Redirect` and `X-Sendfile`: a response names a file, which is sent in place of its body. The backend is
//! released at once. The whole file stands in the response, which may be stored; a client whose response is
//! not stored gets what it asks for of the file ([`answer_from_file`]).
//!
//! These and the other [instructions](sandarac_message::accel) of an application never reach a client. From a
//! pool that may not use them, they have no other effect, except `X-Accel-Buffering`.

use super::link::OriginLink;
use super::local_file::LocalFile;
use super::origin_response::{Keeping, OriginResponse};
use super::response_fields::of_final;
use crate::Fault;
use crate::core::Core;
use crate::files::{FileAt, FileBody, FileFound, NamedFile, NotSent};
use crate::outgoing::{Begun, Terms};
use crate::pool::SitePool;
use crate::site::Site;
use sandarac_message::accel::{self, X_ACCEL_REDIRECT, X_SENDFILE};
use sandarac_message::target::{other_readings, route_path, split_query};
use sandarac_message::{
    Field, Fields, FieldsBuf, Method, Name, RequestHead, ResponseHeadBuf, StoredHead, TooLarge, decimal,
};
use sandarac_net::{Base, Length, Response, boxed, wall};
use sandarac_policy::{Action, Edits};

/// The lengths of the pages with which php-fpm answers requests for a script that it does not find.
const NO_SCRIPT_PAGES: [u64; 2] =
    ["File not found.\n".len() as u64, "No input file specified.\n".len() as u64];

/// The request for which a response has arrived.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) core: &'a Core,
    pub(super) site: &'a Site,
    pub(super) request: &'a RequestHead<'a>,
    pub(super) host: &'a [u8],
    pub(super) pool: &'a SitePool,
}

/// Follows the instructions of a response and removes them. The file that it names is sent in place of its
/// body, if its pool may do that.
///
/// # Errors
/// [`Fault::FileNotAllowed`] if the file is none that the pool may send, [`Fault::FileAmbiguous`] if several
/// are named, [`Fault::File`] if it is not there.
pub(super) async fn follow(
    asked: Asked<'_>,
    mut arrived: Box<OriginResponse>,
) -> Result<Box<OriginResponse>, Fault> {
    let fields = arrived.head.fields.view();
    if !fields.iter().any(|field| accel::is_instruction(&field)) {
        let is_of_php = asked.pool.application.is_some()
            && arrived.head.status == 404
            && arrived.link.remaining().is_some_and(|len| NO_SCRIPT_PAGES.contains(&len));
        if is_of_php {
            arrived.keeping = Keeping::IfStated;
        }
        return Ok(arrived);
    }
    let named = named(asked, fields);
    if named.is_none() && fields.iter().any(|field| accel::names_file(&field)) {
        arrived.keeping = Keeping::Refused;
    }
    arrived.is_unbuffered = accel::is_unbuffered(fields);
    // A file that only some may get often comes with the lifetime of other pages, which nginx ignores then.
    let obeys_expires = asked.pool.x_accel_redirect && named.is_none();
    let expires = accel::expires(fields, arrived.received).filter(|_| obeys_expires);
    arrived.head.fields.retain(|field| !accel::is_instruction(&field));
    if let Some(seconds) = expires {
        keep_for(seconds, &mut arrived.head.fields).map_err(|TooLarge| Fault::HeadTooLarge)?;
    }
    // A response without content has no file either.
    let has_content = !arrived.switched && !matches!(arrived.head.status, 204 | 205 | 304);
    match named {
        None => Ok(arrived),
        Some(_) if !has_content => {
            arrived.keeping = Keeping::IfStated;
            Ok(arrived)
        }
        Some(named) => boxed(|| send(asked, arrived, named)).await,
    }
}

/// Has a response stored for so many seconds, or not at all if that is 0, unless it has a word for this cache
/// already.
fn keep_for(seconds: u64, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    if fields.view().has(Name::SandaracCacheControl) {
        return Ok(());
    }
    fields.add_with(Name::SandaracCacheControl, |out| match seconds {
        0 => out.extend_from_slice(b"no-store"),
        seconds => {
            out.extend_from_slice(b"max-age=");
            decimal::append(out, seconds.min(u32::MAX.into()));
        }
    })
}

/// The file that a response names; `None` if it names none, or its pool may not. An error if the name leads
/// to nothing that the pool may send.
fn named(asked: Asked<'_>, fields: Fields<'_>) -> Option<Result<NamedFile, Fault>> {
    let pool = asked.pool;
    if let Some(uri) = the_only(fields, X_ACCEL_REDIRECT).filter(|_| pool.x_accel_redirect) {
        return Some(uri.and_then(|uri| internal(asked, uri).ok_or(Fault::FileNotAllowed)));
    }
    let (path, rule) = the_only(fields, X_SENDFILE).zip(pool.x_sendfile.as_ref())?;
    Some(path.map(|path| NamedFile {
        rule: rule.clone(),
        edits: Edits::default(),
        host: Vec::new(),
        target: Vec::new(),
        name: FileAt::Absolute(path.to_vec()),
    }))
}

/// The value of the fields of this name; `None` if there are none.
fn the_only<'f>(fields: Fields<'f>, name: &'static [u8]) -> Option<Result<&'f [u8], Fault>> {
    let mut values = fields.all_named(name);
    let first = values.next()?;
    Some(if values.all(|other| other == first) { Ok(first) } else { Err(Fault::FileAmbiguous) })
}

/// The file of an internal route at `uri`; `None` if `uri`, or another reading of it, leads to another route.
fn internal(asked: Asked<'_>, uri: &[u8]) -> Option<NamedFile> {
    let received = split_query(uri).0;
    if received.first() != Some(&b'/') {
        return None;
    }
    let path = route_path(received).ok()?;
    let routes = &asked.site.config.routes;
    let id = routes.find(asked.host, &path, b"GET")?;
    let leads_there = |reading: &Vec<u8>| routes.find(asked.host, reading, b"GET") == Some(id);
    if !other_readings(received, &path).iter().all(leads_there) {
        return None;
    }
    let route = &routes[id];
    let Action::Internal(rule) = &route.action else { return None };
    Some(NamedFile {
        rule: rule.clone(),
        edits: route.response.all.clone(),
        host: asked.host.to_vec(),
        target: uri.to_vec(),
        name: FileAt::Below(path.into_owned()),
    })
}

async fn send(
    asked: Asked<'_>,
    mut arrived: Box<OriginResponse>,
    named: Result<NamedFile, Fault>,
) -> Result<Box<OriginResponse>, Fault> {
    // The backend has said all that matters.
    arrived.link.drop_body();
    let OriginResponse { link, head, switched, requested, received, upload, .. } = *arrived;
    link.close();
    let file = named?.open(asked.core.shared.file_places.clone()).await.map_err(|why| match why {
        NotSent::Outside => Fault::FileNotAllowed,
        NotSent::Refused(refusal) => Fault::File(refusal),
    })?;
    // The whole, without a coding: that would depend on the files beside it, and on no field that the
    // application has named in Vary.
    let whole = RequestHead { fields: Fields::default(), ..*asked.request };
    let begun = without_body(&head.fields).and_then(|fields| response(&file, &whole, fields));
    let FileResponse { status, reason, fields, body, len } = begun.map_err(|TooLarge| Fault::HeadTooLarge)?;
    let (status, reason) = match head.status {
        200 | 206 => (status, &reason),
        other => (other, &head.reason),
    };
    let fields = of_final(status, reason, fields.view(), Some(len)).map_err(|_| Fault::HeadTooLarge)?;
    let head = ResponseHeadBuf { status, reason: reason.clone(), fields, ..head };
    let link = OriginLink::local_file(asked.core, LocalFile::new(body, len));
    Ok(Box::new(OriginResponse {
        link,
        head,
        switched,
        requested,
        received,
        upload,
        keeping: Keeping::IfStated,
        is_unbuffered: false,
        file: Some(file),
    }))
}

/// The answer to the conditions and ranges of a request whose response is not stored. A response with another
/// status than 200 is sent as it is, and so is one without a file.
///
/// # Errors
/// [`Fault::HeadTooLarge`].
pub(crate) fn answer_from_file(
    core: &Core,
    request: &RequestHead<'_>,
    mut arrived: Box<OriginResponse>,
) -> Result<Box<OriginResponse>, Fault> {
    let Some(file) = arrived.file.take() else { return Ok(arrived) };
    let head = &mut arrived.head;
    if head.status != 200 || !matches!(request.method, Method::Get | Method::Head) {
        return Ok(arrived);
    }
    let edited = StoredHead::new(head.status, &head.reason, &head.fields);
    let begun = edited.and_then(|edited| response(&file.under(edited), request, FieldsBuf::new()));
    let FileResponse { status, reason, fields, body, len } = begun.map_err(|TooLarge| Fault::HeadTooLarge)?;
    head.fields = of_final(status, &reason, fields.view(), Some(len)).map_err(|_| Fault::HeadTooLarge)?;
    (head.status, head.reason) = (status, reason);
    arrived.link = OriginLink::local_file(core, LocalFile::new(body, len));
    Ok(arrived)
}

/// The response with a file.
struct FileResponse {
    status: u16,
    reason: Box<[u8]>,
    fields: FieldsBuf,
    body: Option<FileBody>,
    /// Bytes of the body.
    len: u64,
}

/// The fields of the application, without those that describe its own body.
fn without_body(application: &FieldsBuf) -> Result<FieldsBuf, TooLarge> {
    let mut fields = FieldsBuf::new();
    let own = |name| {
        matches!(
            name,
            Name::ContentLength
                | Name::ContentEncoding
                | Name::ContentRange
                | Name::Etag
                | Name::LastModified
                | Name::AcceptRanges
                | Name::Trailer
        )
    };
    fields.extend(application.view(), |field| !own(field.id))?;
    Ok(fields)
}

/// The response to a request for the file. Those of `fields` stay; the file adds to them.
fn response(
    file: &FileFound,
    request: &RequestHead<'_>,
    mut fields: FieldsBuf,
) -> Result<FileResponse, TooLarge> {
    let mut len = 0;
    let mut reason = Box::default();
    let mut added = Ok(());
    let chosen = file.choose(request.fields);
    let terms = Terms { request, now: wall(), hsts: None, cache_status: None };
    let Begun { status, body } = chosen.outgoing(terms.now).begin(&terms, |response| {
        reason = response.reason.into();
        added = add_of_file(&response, &mut fields);
        len = match response.length {
            Length::Known(len) => len,
            _ => length_in(fields.view()),
        };
    });
    added?;
    let body = chosen.body(body);
    let len = if body.is_some() { len } else { 0 };
    Ok(FileResponse { status, reason, fields, body, len })
}

/// Adds the fields of a response with a file, except those that the application has chosen.
fn add_of_file(response: &Response<'_>, fields: &mut FieldsBuf) -> Result<(), TooLarge> {
    for &(name, value) in response.added.iter().filter(|(name, _)| *name != Name::Date) {
        fields.set(name, value)?;
    }
    let (base, keep): (Fields<'_>, &dyn Fn(&Field<'_>) -> bool) = match &response.base {
        Base::Stored(head, _) => (head.shown(), &every),
        Base::Selected(base, keep) => (*base, keep),
        Base::Owned(base) => (base.view(), &every),
    };
    let chosen: Vec<Vec<u8>> = fields.view().iter().map(|field| field.name.to_vec()).collect();
    for field in base.iter().filter(|field| keep(field)) {
        if field.id == Name::Vary || !chosen.iter().any(|name| field.is(name)) {
            fields.push(field.name, field.value)?;
        }
    }
    if let Length::Known(len) = response.length {
        fields.remove(Name::ContentLength);
        fields.add_with(Name::ContentLength, |out| decimal::append(out, len))?;
    }
    Ok(())
}

fn every(_: &Field<'_>) -> bool {
    true
}

fn length_in(fields: Fields<'_>) -> u64 {
    let digits = fields.get(Name::ContentLength).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
