//! Draws the staircase: cycles of a load in a pointer chase over more and more memory.
//!
//! `cargo run --release -p tally-model --example staircase` writes `docs/staircase.svg` and
//! `docs/staircase.csv` beside this crate's manifest.

use std::{error::Error, fs, path::Path};

use plotters::prelude::*;
use tally_model::{
    Access, Block, Branch, Core, Geometry, Insn, Operation, PipelineMode, Privilege, RegisterSet,
};

/// Cycles of a load in a pointer chase: its result is the next one's address.
fn chase(geometry: &Geometry, bytes: u64) -> f64 {
    let pointer = RegisterSet::general(1);
    let operation = Operation { address: pointer, writes: pointer, ..Operation::default() };
    let insn = Insn { pc: 0x40_0000, length: 4, uops: 1, operation, ..Insn::default() };
    let block =
        Block::new(Privilege::User, geometry.width, (1 << 20, 1 << 20), Branch::default(), &[insn]);
    let mut core = Core::new(geometry);
    let lines = bytes / 64;
    // Every line once, in an order without spatial locality.
    let step = (lines * 5 / 8) | 1;
    let mut at = 0;
    let mut round = |core: &mut Core| {
        for _ in 0..lines {
            at = (at + step) % lines;
            let address = 0x1000_0000 + 64 * at;
            let access = Access { address, bytes: 8, retires: true, insn: 0 };
            core.fetch(&block);
            core.access::<false>(&block, access, |address| address);
            core.retire(&block, 0x40_0000);
        }
        core.clock()
    };
    let warm = round(&mut core);
    (round(&mut core) - warm) as f64 / f64::from(geometry.width) / lines as f64
}

/// Sizes from 8 KiB to 64 MiB, four for each doubling.
fn sizes() -> impl Iterator<Item = u64> {
    (13..26).flat_map(|power| (4..8).map(move |quarter| quarter << (power - 2))).chain([1 << 26])
}

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    fs::create_dir_all(&docs)?;
    let curves: Vec<_> = Geometry::ALL
        .iter()
        .map(|(name, geometry)| {
            let mut geometry = geometry.out_of_order(PipelineMode::Real);
            geometry.perfect.dtlb = true;
            let points: Vec<_> = sizes().map(|bytes| (bytes, chase(&geometry, bytes))).collect();
            (*name, points)
        })
        .collect();
    let mut csv = String::from("profile,bytes,cycles\n");
    for (name, points) in &curves {
        for (bytes, cycles) in points {
            csv.push_str(&format!("{name},{bytes},{cycles:.2}\n"));
        }
    }
    fs::write(docs.join("staircase.csv"), csv)?;
    draw(&docs.join("staircase.svg"), &curves)
}

type Curve = (&'static str, Vec<(u64, f64)>);

fn draw(path: &Path, curves: &[Curve]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (800, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Pointer chase: cycles a load (pipeline ooo, perfect=dtlb)", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (8f64..65536.0).log_scale().base(2.0),
            (3f64..400.0).log_scale().base(10.0),
        )?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc("memory that is chased over, KiB")
        .y_desc("cycles")
        .x_label_formatter(&|kib| match *kib {
            kib if kib >= 1024.0 => format!("{} Mi", kib / 1024.0),
            kib => format!("{kib} Ki"),
        })
        .draw()?;
    for (index, (name, points)) in curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points = points.iter().map(|(bytes, cycles)| (*bytes as f64 / 1024.0, *cycles));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
