//! The content of the sample site: a small magazine about resins and finishes. It is the same on every start, so that a
//! load driver can check pages.

use sandarac_balance::Random;

/// One article.
#[derive(Clone, Debug)]
pub struct Article {
    /// 1 to [`COUNT`], the newest first.
    pub number: usize,
    /// The headline.
    pub title: &'static str,
    /// Its section, one of [`SECTIONS`].
    pub section: &'static str,
    /// One sentence under the headline.
    pub lead: String,
    /// The text.
    pub paragraphs: Vec<String>,
}

/// The sections of the magazine.
pub const SECTIONS: [&str; 4] = ["Materials", "Workshop", "History", "Conservation"];

/// The number of articles.
pub const COUNT: usize = TITLES.len();

const TITLES: [&str; 40] = [
    "Sandarac: tears of the Tetraclinis",
    "How to strain a spirit varnish",
    "The night the copal warehouse burned",
    "Cleaning a darkened portrait, centimetre by centimetre",
    "Dammar or mastic? A side-by-side test",
    "Six coats, six days: patience in finishing",
    "Cremona’s ground layer, looked at again",
    "Fluorescence: reading old finishes by lamp",
    "What alcohol does to amber",
    "A brush is a reservoir",
    "Letters from an eighteenth-century colourman",
    "When a crack is part of the picture",
    "Shellac grades, from seedlac to bleached",
    "French polishing without the mystery",
    "The road that carried benzoin",
    "Reversible: what the word promises",
    "Elemi keeps a film from breaking",
    "Dust, and eleven ways to keep it out",
    "Theophilus and the recipe nobody could read",
    "Varnish on paper: maps under glass",
    "Rosin, the honest cheap one",
    "Grinding pigments for a tinted coat",
    "Lacquer caravans of the ninth century",
    "A violin that was stripped in 1911",
    "Propolis: a resin gathered by bees",
    "Drying oils and the smell of fire",
    "The guild that banned turpentine",
    "Moving a fresco behind a curtain of resin",
    "Why sandarac squeaks under the pounce bag",
    "Sanding less, and later",
    "The ledger of a Venetian apothecary",
    "Photographing gloss without glare",
    "Colophony and the violin bow",
    "Setting up a warm room for a cold winter",
    "Vernix, vernice, varnish: a word travels",
    "Retouching that can be told apart",
    "Kauri gum, dug from drowned forests",
    "The last coat is the thinnest",
    "How ink makers lost their monopoly",
    "A catalogue of yellow",
];

const OPENINGS: [&str; 8] = [
    "The first thing to notice is how little of it there is",
    "Ask three makers and you get three jars",
    "It arrives in a paper bag, smelling faintly of pepper",
    "Nothing about the surface tells you how long it took",
    "The recipe fits on a postcard, and leaves out the only hard part",
    "For a century nobody wrote it down, because everybody knew",
    "Hold it to the window and it looks like weak tea",
    "The workshop is cold on purpose",
];

const MIDDLES: [&str; 8] = [
    "A film a few thousandths of a millimetre thick decides whether the wood beneath looks alive or embalmed.",
    "Warm it too quickly and it clouds; leave it too long and it will not flow at all.",
    "The old books measure in eggshells and in the time it takes to say a prayer, which turns out to be precise enough.",
    "What was sold under this name changed from port to port, and so did what people thought of it.",
    "Each layer softens the one below just long enough to become part of it.",
    "Under the microscope the neat story falls apart into three campaigns of work, two of them undocumented.",
    "It is brittle by itself, and so it is hardly ever used by itself.",
    "The difference is not in the resin. It is in the waiting.",
];

const ENDINGS: [&str; 6] = [
    "Then it is left alone, which is the part that cannot be hurried.",
    "Most of the skill is in stopping.",
    "We tried it on three boards; the third is still tacky.",
    "Anyone can do it once.",
    "The light does the rest, slowly, over a few decades.",
    "That, more than the ingredient, is what has been passed down.",
];

/// The article with this number.
pub fn article(number: usize) -> Option<Article> {
    let index = number.checked_sub(1)?;
    let title = *TITLES.get(index)?;
    let pick = |pool: &[&'static str], step: usize| pool[(index * 5 + step * 3 + step / 2) % pool.len()];
    let paragraphs = (0..7)
        .map(|step| {
            let opening = pick(&OPENINGS, step);
            let (middle, more) = (pick(&MIDDLES, step), pick(&MIDDLES, step + 3));
            format!("{opening}. {middle} {more} {}", pick(&ENDINGS, step))
        })
        .collect();
    Some(Article {
        number,
        title,
        section: SECTIONS[index % SECTIONS.len()],
        lead: pick(&MIDDLES, 7).to_owned(),
        paragraphs,
    })
}

/// Every article, the newest first.
pub fn articles() -> impl Iterator<Item = Article> {
    (1..=COUNT).filter_map(article)
}

/// An SVG picture for an article: layered translucent shapes in resin colours, drawn from the number alone.
pub fn picture(number: usize) -> String {
    let mut random = Random::new(number as u64);
    let mut next = |limit| random.below(limit);
    let hue = 22 + next(26);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"picture-{number}\" viewBox=\"0 0 640 360\" role=\"img\" \
         preserveAspectRatio=\"xMidYMid slice\">\n<defs><linearGradient id=\"g\" x2=\"1\" y2=\"1\">\
         <stop stop-color=\"hsl({hue} 78% 62%)\"/><stop offset=\"1\" stop-color=\"hsl({} 72% 24%)\"/>\
         </linearGradient></defs>\n<rect width=\"640\" height=\"360\" fill=\"url(#g)\"/>\n",
        hue.saturating_sub(14)
    );
    for _ in 0..14 {
        let (x, y, rx, ry) = (next(640), next(360), 30 + next(150), 20 + next(90));
        let (turn, shade, light, opacity) = (next(180), hue + next(24), 35 + next(45), 10 + next(22));
        svg.push_str(&format!(
            "<ellipse cx=\"{x}\" cy=\"{y}\" rx=\"{rx}\" ry=\"{ry}\" transform=\"rotate({turn} {x} {y})\" \
             fill=\"hsl({shade} 85% {light}%)\" opacity=\".{opacity}\"/>\n"
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_are_numbered_from_one_and_never_change() {
        assert_eq!(articles().count(), COUNT);
        assert!(article(0).is_none() && article(COUNT + 1).is_none());
        assert_eq!(article(3).unwrap().paragraphs, article(3).unwrap().paragraphs);
        assert_ne!(article(3).unwrap().paragraphs, article(4).unwrap().paragraphs);
        assert_eq!(picture(7), picture(7));
    }
}
