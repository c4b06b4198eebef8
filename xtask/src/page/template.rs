//! The templates of pages, and the function that fills them.
//!
//! Every text goes through the template engine, which escapes it. Pictures are the only markup from
//! elsewhere; their library escapes text too.

use minijinja::{
    Environment, HtmlEscape, UndefinedBehavior, Value, syntax::SyntaxConfig, value::Serde,
};
use serde::Serialize;
use tally_abi::{
    ExitStatus,
    text::{Grouped, percent},
};

use crate::{Failure, Result, samples::short_function};

/// The templates. Names that end in `.html` are escaped.
const TEMPLATES: [(&str, &str); 8] = [
    ("diff.html", include_str!("diff.html")),
    ("layout.html", include_str!("layout.html")),
    ("page.css", include_str!("page.css")),
    ("page.js", include_str!("page.js")),
    ("parts.html", include_str!("parts.html")),
    ("run.html", include_str!("run.html")),
    ("session.html", include_str!("session.html")),
    ("zoom.js", include_str!("zoom.js")),
];
/// Columns of a function's name, whose whole is the text of a pointer that rests on it.
const NAME_COLUMNS: usize = 60;
/// The id of the element that contains the JSON object.
const DATA: &str = "data";

/// Makes a page from this template. `object` is the object that `--json` prints; the page contains
/// it.
///
/// # Errors
/// The template does not accept the view.
pub fn page(template: &str, view: &impl Serialize, object: &impl Serialize) -> Result<String> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(ExitStatus::HostError, format!("the page cannot be made: {why}"))
    };
    let json = serde_json::to_string(object).map_err(|error| failed(&error))?;
    // In JSON this character is only in strings. Escaped, nothing in them can end the element.
    let json = json.replace('<', "\\u003c");
    let made = environment().and_then(|environment| {
        environment.get_template(template)?.render(minijinja::context! {
            view => Value::from(Serde(view)),
            json => Value::from_safe_string(json),
            data => DATA,
        })
    });
    made.map_err(|error| failed(&format_args!("{error:#}")))
}

/// The JSON object inside a page.
pub fn object(page: &str) -> Option<&str> {
    let (_, rest) =
        page.split_once(&format!("<script type=\"application/json\" id=\"{DATA}\">"))?;
    Some(rest.split_once("</script>")?.0)
}

fn environment() -> std::result::Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_filter("grouped", |count: f64| Grouped(count.round() as u64).to_string());
    environment.add_filter("percent", |share: f64| percent(share, false));
    environment.add_filter("fixed", |number: f64, decimals: usize| format!("{number:.decimals$}"));
    environment.add_filter("short_function", |name: &str| short_function(name, NAME_COLUMNS));
    environment.add_filter("breakable", |name: &str| Value::from_safe_string(breakable(name)));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// The markup of a name that a narrow table can break after its dots and underscores.
fn breakable(name: &str) -> String {
    HtmlEscape(name).to_string().replace('.', ".<wbr>").replace('_', "_<wbr>")
}
