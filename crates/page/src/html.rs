//! The frame of a page and what stands in it.

use plotters::style::RGBColor;
use std::fmt::Display;

const STYLE: &str = include_str!("page.css");

/// A page. Every part is markup already; [`escaped`] makes such of text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// The title of the document.
    pub title: &'a str,
    /// The heading.
    pub heading: &'a str,
    /// What stands below it: paragraphs and lists.
    pub lead: &'a str,
    /// Rules of style of its own.
    pub style: &'a str,
    /// Its sections.
    pub main: &'a str,
}

impl Page<'_> {
    /// The whole page.
    pub fn text(&self) -> String {
        let Self { title, heading, lead, style, main } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
             <header>\n<h1>{heading}</h1>\n{lead}</header>\n<main>\n{main}</main>\n</body>\n</html>\n"
        )
    }
}

/// A part of a page with its heading.
pub fn section(title: &str, content: &str) -> String {
    format!("<section>\n<h2>{title}</h2>\n{content}</section>\n")
}

/// A table whose first row is its head; `class` names a cell's class from its row and column.
pub fn html_table(rows: &[Vec<String>], class: impl Fn(&[String], usize) -> String) -> String {
    let mut text = "<div class=\"table\"><table>\n".to_owned();
    for (number, row) in rows.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        text += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            text += &format!("<{tag} class=\"{}\">{}</{tag}>", class(row, column), escaped(cell));
        }
        text += "</tr>\n";
    }
    text + "</table></div>\n"
}

/// What the colours of a plot mean.
pub fn legend<'a>(items: impl IntoIterator<Item = (&'a str, RGBColor)>) -> String {
    let item = |(name, RGBColor(red, green, blue)): (&str, RGBColor)| {
        format!("<li><i style=\"background:rgb({red},{green},{blue})\"></i>{}</li>", escaped(name))
    };
    let items: String = items.into_iter().map(item).collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

/// Facts in a line: the machine, its programs, the date.
pub fn facts(facts: impl IntoIterator<Item = String>) -> String {
    let items: String = facts.into_iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!("<ul class=\"machine\">{items}</ul>\n")
}

/// Text that is no markup, whatever it is.
pub fn escaped(text: impl Display) -> String {
    text.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_printed_cannot_become_markup() {
        assert_eq!(escaped("<b>&\"</b>"), "&lt;b&gt;&amp;&quot;&lt;/b&gt;");
        assert_eq!(
            legend([("<i>", RGBColor(1, 2, 3))]),
            "<ul class=\"legend\"><li><i style=\"background:rgb(1,2,3)\"></i>&lt;i&gt;</li></ul>\n"
        );
    }

    #[test]
    fn a_verdict_is_the_class_of_its_cell() {
        let rows = [vec!["goal".into(), String::new()], vec!["a".into(), "missed".into()]];
        let class = |row: &[String], column: usize| if column == 1 { row[1].clone() } else { String::new() };
        let html = html_table(&rows, class);
        assert!(html.contains("<td class=\"\">a</td><td class=\"missed\">missed</td>"), "{html}");
    }
}
