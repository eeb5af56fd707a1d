//! How plots look, as SVG: their colours and letters, and the axis of groups of bars.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;

/// Drawn, or any fault of the drawing library.
pub type Drawn<T> = Result<T, Box<dyn Error + Send + Sync>>;
/// Where a plot is drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The colour of letters.
pub const TEXT: RGBColor = RGBColor(90, 96, 105);
/// The colour of lines that help reading.
pub const GRID: RGBColor = RGBColor(228, 231, 235);
/// The font: the page's own.
pub const FONT: &str = "sans-serif";

/// Draws on a fresh picture and returns its text.
/// # Errors
/// Any fault of the drawing library.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area)?;
        area.present()?;
    }
    Ok(text)
}

/// A chart with room for its labels.
pub fn chart<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart.margin(6).margin_right(14).x_label_area_size(40).y_label_area_size(58);
    chart
}

/// A chart's mesh with the lines and letters that all have: level lines alone, and quiet ones.
pub fn quiet<'m, 'a, 'b, X, Y>(
    mut mesh: MeshStyle<'m, 'a, X, Y, SVGBackend<'b>>,
) -> MeshStyle<'m, 'a, X, Y, SVGBackend<'b>>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    mesh.disable_x_mesh().bold_line_style(GRID).light_line_style(TRANSPARENT).axis_style(GRID);
    mesh.label_style((FONT, 13, &TEXT)).axis_desc_style((FONT, 13, &TEXT));
    mesh
}

/// The axis of groups of bars: one unit for each, with its label in the middle.
#[derive(Clone, Copy, Debug)]
pub struct Groups(pub usize);

impl Ranged for Groups {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = value / self.0.max(1) as f64;
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        (0..self.0).map(|group| group as f64 + 0.5).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        0.0..self.0 as f64
    }
}

impl ValueFormatter<f64> for Groups {
    fn format(value: &f64) -> String {
        format!("{value}")
    }
}
