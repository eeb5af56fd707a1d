//! Pages of experiments: one HTML file each that needs nothing but itself, with plots as SVG. What all experiments
//! share is here: the page's frame, tables, text that cannot become markup, and how plots look.
#![forbid(unsafe_code)]

mod html;
mod plot;

pub use html::{Page, escaped, facts, html_table, legend, section};
pub use plot::{Area, Drawn, FONT, GRID, Groups, TEXT, chart, quiet, svg};
pub use plotters;
