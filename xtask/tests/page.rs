//! The page of a run in Chromium, if this machine has it: the script runs, sorts, and has nothing
//! to complain of. Skipped otherwise, with a line on standard error.

use std::{
    cmp::Reverse,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use scraper::{Html, Selector};
use xtask::{
    page,
    report::{EventReport, Report},
};

const SAMPLE: &str = include_str!("../src/page/sample.json");
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Presses the heading of the second column of the table of events, twice, and leaves the order.
const PRESS: &str = "<script>
const table = document.querySelector('[data-event]').closest('table');
const order = () => [...table.tBodies[0].rows].map((row) => row.dataset.event).join(' ');
const button = table.tHead.rows[0].cells[1].querySelector('button');
button.click();
document.body.dataset.descending = order();
button.click();
document.body.dataset.ascending = order();
document.body.dataset.sort = table.tHead.rows[0].cells[1].getAttribute('aria-sort');
</script>";

fn chromium() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut paths =
        env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    paths.find(|path| path.is_file())
}

/// What Chromium makes of a page, and what it prints.
fn opened(chromium: &Path, page: &str) -> (Html, String) {
    let folder = env::temp_dir().join(format!("tally-page-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is a temporary folder");
    let file = folder.join("page.html");
    fs::write(&file, page).expect("the page can be written");
    let mut command = Command::new("timeout");
    command.args(["60".as_ref(), chromium.as_os_str()]);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-sync", "--dump-dom"]);
    command.args(["--disable-background-networking", "--disable-component-update"]);
    command.args(["--enable-logging=stderr", "--log-level=0"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    let output = command.arg(format!("file://{}", file.display())).output().expect("it starts");
    fs::remove_dir_all(&folder).expect("the folder can be removed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {said}", output.status);
    (Html::parse_document(&String::from_utf8_lossy(&output.stdout)), said)
}

#[test]
fn chromium_sorts_the_page_and_its_console_is_empty() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no {}", NAMES.join(", "));
        return;
    };
    let report: Report = serde_json::from_str(SAMPLE).expect("it is a report");
    let text = page::render(&report).expect("there is a page");
    let (page, said) = opened(&chromium, &text.replace("</body>", &format!("{PRESS}</body>")));
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    let body = page.select(&Selector::parse("body").unwrap()).next().expect("there is a body");
    let order = |name: &str| body.attr(name).unwrap_or_else(|| panic!("the script ran: {said}"));
    let mut events = report.first.expect("there is a session").events;
    events.sort_by_key(|event| event.estimate);
    let names = |events: &[EventReport]| {
        events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order("data-ascending"), names(&events));
    assert_eq!(order("data-sort"), "ascending");
    // Equal values keep their order.
    events.sort_by_key(|event| Reverse(event.estimate));
    assert_eq!(order("data-descending"), names(&events));
}
