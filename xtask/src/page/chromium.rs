//! Tests of a run's page in Chromium, if the host has it: the scripts run, sort and zoom without
//! errors. Otherwise skipped, with a line on standard error.

use std::{
    cmp::Reverse,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use scraper::{Html, Selector};

use super::{
    Samples, render,
    tests::{recording, sample, with_phases},
};
use crate::{output, recording::Symbolizer, report::EventReport};

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Script: presses the heading of the second column of the table of events, twice, and stores the
/// order.
const PRESS: &str = "
const table = document.querySelector('[data-event]').closest('table');
const order = () => [...table.tBodies[0].rows].map((row) => row.dataset.event).join(' ');
const button = table.tHead.rows[0].cells[1].querySelector('button');
button.click();
document.body.dataset.descending = order();
button.click();
document.body.dataset.ascending = order();
document.body.dataset.sort = table.tHead.rows[0].cells[1].getAttribute('aria-sort');
";
/// Script: zooms by the wheel, a drag, a key and buttons, and stores what is shown after each.
const ZOOM: &str = "
const lines = document.querySelector('.timelines');
const plots = [...lines.querySelectorAll('svg.plot')];
const shown = () => {
  const boxes = plots.map((plot) => {
    const [x, , width] = plot.getAttribute('viewBox').split(' ').map(Number);
    return [x / plot.dataset.width, width / plot.dataset.width].map((it) => it.toFixed(3)).join('+');
  });
  return [...new Set(boxes)].join(' ');
};
const place = plots[0].getBoundingClientRect();
const at = (share) => ({ clientX: place.left + share * place.width, clientY: place.top + 5,
  bubbles: true, cancelable: true, button: 0, pointerId: 1 });
const leave = (name) => {
  document.body.dataset[name] = shown() + ' | ' + lines.querySelector('output').textContent
    + ' | ' + plots[0].parentNode.querySelector('.ticks text:last-child').textContent;
};
const named = (name) => lines.querySelector(`button[aria-label='${name}']`);
plots[0].setPointerCapture = () => {};
leave('all');
named('Zoom in').click();
leave('in');
plots[0].dispatchEvent(new PointerEvent('pointerdown', at(0.5)));
plots[0].dispatchEvent(new PointerEvent('pointermove', at(0.0)));
plots[0].dispatchEvent(new PointerEvent('pointerup', at(0.0)));
leave('dragged');
lines.dispatchEvent(new KeyboardEvent('keydown', { key: '0', bubbles: true }));
leave('reset');
const wheel = new WheelEvent('wheel', { ...at(1.0), deltaY: -1 });
plots[0].dispatchEvent(wheel);
leave('wheel');
document.body.dataset.prevented = wheel.defaultPrevented;
named('Show all of the time').click();
const outward = new WheelEvent('wheel', { ...at(0.5), deltaY: 1 });
plots[0].dispatchEvent(outward);
document.body.dataset.outward = outward.defaultPrevented;
";
/// Script: presses the frame of a function in a flame graph, whose document replaces the page, and
/// stores the names that are still visible.
const FLAME: &str = "
addEventListener('load', () => setTimeout(() => {
  const frames = () => [...document.querySelectorAll('#frames > g')];
  const names = () => frames().filter((frame) => !frame.classList.contains('hide'))
    .map((frame) => frame.querySelector('title').textContent.split(' (')[0]).join(' ');
  document.body.dataset.before = names();
  const inner = frames().find((frame) => frame.textContent.includes('0x2000'));
  inner.querySelector('rect').dispatchEvent(new MouseEvent('click', { bubbles: true }));
  document.body.dataset.after = names();
}, 50));
";

/// Script: stores the tables that are wider than their place, and the width of the window.
const WIDE: &str = "
const wide = [...document.querySelectorAll('.scroll')].filter((it) => it.scrollWidth > it.clientWidth);
document.body.dataset.wide = wide.map((it) => it.getAttribute('aria-label')).join(', ');
document.body.dataset.inner = innerWidth;
";
/// Width of a window that shows everything, in pixels.
const WINDOW: u32 = 1400;

fn chromium() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut paths =
        env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let found = paths.find(|path| path.is_file());
    if found.is_none() {
        output::note(format_args!("skipped: no {}", NAMES.join(", ")));
    }
    found
}

/// Opens a page with this script at its end in Chromium; returns the resulting page. The console
/// must be empty.
fn opened(chromium: &Path, page: &str, script: &str) -> Html {
    opened_in(WINDOW, chromium, page, script)
}

/// Opens a page as [`opened`] does, in a window of this width in pixels.
fn opened_in(width: u32, chromium: &Path, page: &str, script: &str) -> Html {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: the numbers only need to differ.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("tally-page-{}-{count}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is a temporary folder");
    let file = folder.join("page.html");
    fs::write(&file, format!("{page}<script>{script}</script>")).expect("it can be written");
    let mut command = Command::new("timeout");
    command.args(["60".as_ref(), chromium.as_os_str()]);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-sync", "--dump-dom"]);
    command.args(["--disable-background-networking", "--disable-component-update"]);
    command.args(["--virtual-time-budget=2000", "--enable-logging=stderr", "--log-level=0"]);
    command.arg(format!("--window-size={width},1200"));
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    let output = command.arg(format!("file://{}", file.display())).output().expect("it starts");
    fs::remove_dir_all(&folder).expect("the folder can be removed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {said}", output.status);
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    Html::parse_document(&String::from_utf8_lossy(&output.stdout))
}

/// The value that the script stored in the body's attribute `data-NAME`.
fn left<'a>(page: &'a Html, name: &str) -> &'a str {
    let body = page.select(&Selector::parse("body").unwrap()).next().expect("there is a body");
    body.attr(&format!("data-{name}")).unwrap_or_else(|| panic!("the script leaves {name}"))
}

#[test]
fn chromium_sorts_the_page_and_its_console_is_empty() {
    let Some(chromium) = chromium() else { return };
    let report = sample();
    let page = opened(&chromium, &render(&report, &Samples::default()).unwrap(), PRESS);
    let mut events = report.first.expect("there is a session").events;
    events.sort_by_key(|event| event.estimate);
    let names = |events: &[EventReport]| {
        events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left(&page, "ascending"), names(&events));
    assert_eq!(left(&page, "sort"), "ascending");
    // Equal values keep their order.
    events.sort_by_key(|event| Reverse(event.estimate));
    assert_eq!(left(&page, "descending"), names(&events));
}

#[test]
fn no_table_scrolls_in_a_narrow_window() {
    let Some(chromium) = chromium() else { return };
    let page = render(&sample(), &Samples::default()).unwrap();
    for width in [1200, 1000, 500] {
        let page = opened_in(width, &chromium, &page, WIDE);
        assert_eq!(left(&page, "inner"), width.to_string());
        assert_eq!(left(&page, "wide"), "", "{width} pixels");
    }
}

#[test]
fn time_lines_zoom_together_by_wheel_drag_keys_and_buttons() {
    let Some(chromium) = chromium() else { return };
    let page = opened(&chromium, &render(&with_phases(), &Samples::default()).unwrap(), ZOOM);
    let shares = |name: &str| left(&page, name).split(" | ").next().unwrap().to_owned();
    assert_eq!(shares("all"), "0.000+1.000");
    assert_eq!(shares("in"), "0.250+0.500");
    assert_eq!(shares("dragged"), "0.500+0.500");
    assert_eq!(left(&page, "reset"), left(&page, "all"));
    assert_eq!(shares("wheel"), "0.200+0.800");
    assert_ne!(left(&page, "wheel"), left(&page, "all"));
    // If nothing can be zoomed, the page scrolls.
    assert_eq!((left(&page, "prevented"), left(&page, "outward")), ("true", "false"));
}

#[test]
fn a_flame_graph_zooms_without_a_network() {
    let Some(chromium) = chromium() else { return };
    let sampled = super::sampled(&recording("rounds"), &Symbolizer::default(), None).unwrap();
    // The graph's console must be empty inside the page, too.
    let whole = render(&sample(), &sampled).unwrap();
    let page = opened(&chromium, &whole, "");
    let frame = page.select(&Selector::parse("iframe.flame").unwrap()).next().unwrap();
    let inner = opened(&chromium, frame.attr("srcdoc").unwrap(), FLAME);
    assert_eq!(left(&inner, "before"), "0x1000 all rounds 0x2000");
    assert_eq!(left(&inner, "after"), "all rounds 0x2000");
}
