//! The page with the timeline: one file that needs no other, opens without a network, and says the same as the terminal.
//!
//! Surprise: the drawing is stretched sideways by the browser when one zooms in, so heights are pixels and widths are
//! microseconds.

use std::fmt::Write;
use std::path::Path;

use super::text::text;
use super::timeline::{Bar, Lane, Sort, Timeline, Window};
use super::words::{count, span_us};
use crate::judgement::Judgement;

/// The height of one acquisition.
const ROW: usize = 9;
/// Between two workers.
const GAP: usize = 14;
/// For the marks of a worker, above its rows.
const MARKS: usize = 10;
/// Colours that are told apart, also by those who see few; then they come again.
const COLOURS: [&str; 8] = ["#4477aa", "#ee8866", "#228833", "#ccbb44", "#aa3377", "#66ccee", "#994455", "#777777"];
/// What is marked, its class, and its sign.
const SIGNS: [(Sort, &str, &str, &str); 5] = [
    (Sort::Two, "two", "▼", "two hold at once"),
    (Sort::Overwritten, "over", "◆", "an acknowledged update is overwritten"),
    (Sort::Refused, "refused", "▲", "a fence refuses a late holder"),
    (Sort::Lost, "lost", "●", "a holder is told that its hold is lost"),
    (Sort::Killed, "killed", "✕", "a worker is killed"),
];

/// The page.
pub fn page(judgement: &Judgement, timeline: &Timeline, folder: &Path) -> String {
    let plan = &judgement.plan;
    let verdict = if judgement.passed() { "passed" } else { "FAILED" };
    let title = escaped(&format!("lockkeeper verify {}, seed {}: {verdict}", plan.target, plan.seed));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{}</style>\n<h1 class=\"{}\">{title}</h1>\n\
         <pre>{}</pre>\n<h2>Timeline</h2>\n{}{}<script>\n{}</script>\n</html>\n",
        include_str!("page.css"),
        if judgement.passed() { "good" } else { "bad" },
        escaped(&text(judgement, folder)),
        legend(timeline),
        drawing(timeline),
        include_str!("page.js"),
    )
}

fn legend(timeline: &Timeline) -> String {
    let mut html = String::from("<p class=\"legend\">");
    for (at, lock) in timeline.locks.iter().enumerate().take(COLOURS.len()) {
        let _ = write!(html, "<span><i style=\"background:{}\"></i>{}</span> ", COLOURS[at], escaped(lock));
    }
    if timeline.locks.len() > COLOURS.len() {
        let _ = write!(html, "<span>{} locks: colours come again</span> ", count(timeline.locks.len() as u64));
    }
    html += "<span><i class=\"wait\"></i>waiting</span> <span><i class=\"hurt\"></i>something hurts</span> ";
    for (_, class, sign, said) in SIGNS {
        let _ = write!(html, "<span><b class=\"{class}\">{sign}</b> {said}</span> ");
    }
    html +=
        "</p>\n<p>Point at something to read what it is. The wheel zooms, dragging moves, a double click shows all.";
    if timeline.left_out > 0 {
        let _ = write!(html, " Not drawn: {} acquisitions that are short and unmarked.", count(timeline.left_out));
    }
    if timeline.unmarked > 0 {
        let _ = write!(html, " Not drawn: {} later marks of a sort with very many.", count(timeline.unmarked));
    }
    html += "</p>\n";
    html
}

fn drawing(timeline: &Timeline) -> String {
    let height = |lane: &Lane| MARKS + lane.rows.max(1) * ROW;
    let total = timeline.lanes.iter().map(|lane| height(lane) + GAP).sum::<usize>().max(GAP);
    let length = timeline.length.max(1);
    let mut names = String::new();
    let mut svg = String::new();
    for window in &timeline.windows {
        svg += &shade(window, 0, total, length);
    }
    let mut signs = String::new();
    let mut top = GAP / 2;
    for lane in &timeline.lanes {
        let _ = writeln!(names, "<text x=\"0\" y=\"{}\">worker {}</text>", top + MARKS + ROW, lane.worker);
        for window in &lane.windows {
            svg += &shade(window, top, height(lane), length);
        }
        for bar in &lane.bars {
            svg += &acquisition(bar, top + MARKS + bar.row * ROW);
        }
        signs += &marks(lane, top + MARKS - 1, length);
        top += height(lane) + GAP;
    }
    format!(
        "<div id=\"chart\" data-length=\"{length}\">\n<svg class=\"names\" height=\"{total}\" width=\"80\">\n{names}</svg>\n\
         <div class=\"area\"><svg id=\"bars\" height=\"{total}\" viewBox=\"0 0 {length} {total}\" \
         preserveAspectRatio=\"none\">\n{svg}</svg>\n<div id=\"signs\">\n{signs}</div>\n<div id=\"axis\"></div></div>\n</div>\n"
    )
}

/// A time in which something hurt. One that is over at once is still wide enough to be seen.
fn shade(window: &Window, top: usize, height: usize, length: u64) -> String {
    let width = window.to.saturating_sub(window.from).max(length / 2_000).max(1);
    let times = format!("{} after the begin, for {}", span_us(window.from), span_us(window.to - window.from));
    format!(
        "<rect class=\"hurt\" x=\"{}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"><title>{}\n{times}</title></rect>\n",
        window.from,
        escaped(&window.said),
    )
}

/// A thin line while it waits, and a thick one while it holds.
fn acquisition(bar: &Bar, top: usize) -> String {
    let until = bar.held.unwrap_or(bar.ended);
    let said = escaped(&format!("{}\nasked {} after the begin", bar.said, span_us(bar.asked)));
    let mut svg = String::new();
    if until > bar.asked {
        let (y, width) = (top + ROW / 2, until - bar.asked);
        let _ = write!(svg, "<rect class=\"wait\" x=\"{}\" y=\"{y}\" width=\"{width}\" height=\"1\"/>", bar.asked);
    }
    let (class, colour) = match bar.held {
        Some(_) => ("hold", COLOURS[bar.lock % COLOURS.len()]),
        None => ("none", "#888888"),
    };
    let from = bar.held.unwrap_or(bar.asked);
    let width = bar.ended.saturating_sub(from).max(1);
    let height = ROW - 2;
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" fill=\"{colour}\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{height}\">\
         <title>{said}</title></rect>"
    );
    svg
}

/// Signs are no part of the drawing, which is stretched; they are put where they belong by their share of its width.
fn marks(lane: &Lane, top: usize, length: u64) -> String {
    let mut html = String::new();
    for mark in &lane.marks {
        let Some((_, class, sign, said)) = SIGNS.iter().find(|(sort, ..)| *sort == mark.sort) else { continue };
        let left = mark.at as f64 * 100.0 / length as f64;
        let title = escaped(&format!("{said}\n{}\n{} after the begin", mark.said, span_us(mark.at)));
        let _ = writeln!(
            html,
            "<b class=\"{class}\" data-at=\"{}\" style=\"left:{left:.4}%;top:{top}px\" title=\"{title}\">{sign}</b>",
            mark.at
        );
    }
    html
}

/// Text as HTML, also inside of quotes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '\'' => html += "&#39;",
            c if c.is_control() && c != '\n' => html.push('\u{fffd}'),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::report::timeline::Mark;

    fn timeline() -> Timeline {
        let bar = |row, held: Option<u64>| Bar {
            row,
            asked: 100,
            held,
            ended: 900,
            lock: 9,
            said: "worker 0.0 op 1 of <script>alert('x')</script>\u{1b}[2J".to_owned(),
        };
        let window = Window { from: 200, to: 300, said: "cut \"connections\"".to_owned() };
        let mark = Mark { at: 250, sort: Sort::Two, said: "& so on".to_owned() };
        let lane = Lane {
            worker: 0,
            rows: 2,
            bars: vec![bar(0, Some(150)), bar(1, None)],
            windows: vec![window.clone()],
            marks: vec![mark],
        };
        Timeline {
            length: 1_000,
            locks: vec!["a<b".to_owned(); 10],
            lanes: vec![lane],
            windows: vec![window],
            left_out: 12_345,
            unmarked: 0,
        }
    }

    #[test]
    fn the_page_needs_nothing_and_nobody() {
        let page = page(&sample::failed(), &timeline(), Path::new("out"));
        for from_elsewhere in ["http:", "https:", "src=", "href=", "@import", "url(", "//cdn"] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
        assert_eq!((page.matches("<script>").count(), page.matches("</script>").count()), (1, 1));
        assert!(page.contains("<h1 class=\"bad\">lockkeeper verify redis, seed 42: FAILED</h1>"), "{page}");
        assert!(page.contains("Not drawn: 12,345 acquisitions"), "{page}");
    }

    #[test]
    fn what_others_wrote_is_text() {
        let page = page(&sample::judgement(), &timeline(), Path::new("<out>"));
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\u{fffd}[2J"), "{page}");
        assert!(page.contains("a&lt;b") && page.contains("&lt;out&gt;") && page.contains("&amp; so on"));
        assert!(page.contains("cut &quot;connections&quot;"));
        assert!(!page.contains('\x1b') && !page.contains("a<b"));
    }

    #[test]
    fn everything_is_drawn_where_it_belongs() {
        let page = page(&sample::judgement(), &timeline(), Path::new("out"));
        assert!(page.contains("<rect class=\"wait\" x=\"100\" y=\"21\" width=\"50\" height=\"1\"/>"), "{page}");
        assert!(
            page.contains("<rect class=\"hold\" fill=\"#ee8866\" x=\"150\" y=\"17\" width=\"750\" height=\"7\">"),
            "{page}"
        );
        assert!(
            page.contains("<rect class=\"none\" fill=\"#888888\" x=\"100\" y=\"26\" width=\"800\" height=\"7\">"),
            "{page}"
        );
        assert!(page.contains("<rect class=\"hurt\" x=\"200\" y=\"0\" width=\"100\" height=\"42\">"), "{page}");
        assert!(page.contains("data-at=\"250\" style=\"left:25.0000%;top:16px\""), "{page}");
        assert!(page.contains("viewBox=\"0 0 1000 42\""), "{page}");
    }

    #[test]
    fn an_empty_history_has_a_page_too() {
        let page = page(&sample::judgement(), &Timeline::default(), Path::new("out"));
        assert!(page.contains("viewBox=\"0 0 1 14\"") && page.contains("<h1 class=\"good\">"), "{page}");
    }
}
