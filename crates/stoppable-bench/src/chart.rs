//! The ratios as a picture: one bar a case, a line where the peer stands, a tick where the limit is.

use std::fmt::Write;

use crate::row::{Row, Verdict};

const NAME: f64 = 150.0;
const BARS: f64 = 460.0;
const NUMBER: f64 = 190.0;
const LINE: f64 = 20.0;
const TOP: f64 = 44.0;
/// Bars end here; the number beside them says by how much they were cut.
const HIGHEST: f64 = 1.75;

/// An SVG that needs no fonts of its own and can be read on light and dark ground.
pub(crate) fn svg(rows: &[&Row]) -> String {
    let height = TOP + LINE * rows.len() as f64 + 12.0;
    let width = NAME + BARS + NUMBER;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n\
         <title>Cost of stoppable as a part of the cost of its peers</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{NAME}\" y=\"16\" fill=\"#333\">ours / peer on one thread; shorter is better, the black tick is \
         the limit</text>\n"
    );
    for tenths in [0, 5, 10, 15] {
        let ratio = f64::from(tenths) / 10.0;
        let (x, colour) = (at(ratio), if tenths == 10 { "#555" } else { "#ddd" });
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"{colour}\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" fill=\"#666\" text-anchor=\"middle\" font-size=\"10\">{ratio}</text>",
            TOP - 6.0,
            height - 8.0,
            TOP - 10.0
        );
    }
    for (place, row) in rows.iter().enumerate() {
        bar(&mut svg, row, TOP + LINE * place as f64);
    }
    svg + "</svg>\n"
}

fn at(ratio: f64) -> f64 {
    NAME + BARS * ratio.min(HIGHEST) / HIGHEST
}

fn bar(svg: &mut String, row: &Row, top: f64) {
    let colour = match row.verdict() {
        Verdict::Aim => "#2e8b57",
        Verdict::Must => "#4a7fb5",
        Verdict::Missed => "#c0504d",
        Verdict::Unjudged => "#9a9a9a",
    };
    let (end, text) = (at(row.ratio), top + 12.0);
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{text}\" fill=\"#222\" text-anchor=\"end\">{}</text>\
         <rect x=\"{NAME}\" y=\"{}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\"/>",
        NAME - 8.0,
        row.key,
        top + 2.0,
        end - NAME
    );
    if let Some(limits) = row.limits {
        let x = at(limits.must);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#000\" stroke-width=\"2\"/>",
            top + 1.0,
            top + 15.0
        );
    }
    let x = row.limits.map_or(end, |limits| end.max(at(limits.must))) + 6.0;
    let peer = row.peer.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{text}\" fill=\"#222\">{:.2} <tspan fill=\"#777\" font-size=\"10\">{peer}</tspan></text>",
        row.ratio
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_ends_at_its_ratio_and_the_longest_are_cut() {
        assert_eq!(at(0.0), NAME);
        assert_eq!(at(HIGHEST / 2.0), NAME + BARS / 2.0);
        assert_eq!(at(99.0), NAME + BARS);
    }
}
