//! Parquet tables: a row for each slice and event that was counted in it, or for each sample.
//!
//! The key-value metadata has the run (`tally.run`, the object of the trace's head) and each
//! column's unit and meaning (`tally.columns`).

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::{Type, TypePtr},
};
use serde_json::{Map, Value, json};
use tally_abi::{
    ExitStatus,
    trace::{SampleRecord, SliceRecord},
};

use crate::{
    Failure, Result,
    recording::{Counted, Recording, Symbolizer},
};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// The unit of columns that contain names or choices.
const NAME: &str = "name";

/// A column of a table with rows of type `R`.
struct Column<R> {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    form: Form<R>,
}

/// The type of a column, and its value in a row. A value that is not known is null.
enum Form<R> {
    U64(fn(&R) -> u64),
    U32(fn(&R) -> u32),
    Flag(fn(&R) -> bool),
    Text(fn(&R) -> String),
    KnownU32(fn(&R) -> Option<u32>),
    KnownText(fn(&R) -> Option<String>),
}

impl<R> Column<R> {
    fn schema(&self) -> std::result::Result<TypePtr, ParquetError> {
        let integer = |bit_width| LogicalType::integer(bit_width, false);
        let (physical, logical) = match self.form {
            Form::U64(_) => (Physical::INT64, Some(integer(64))),
            Form::U32(_) | Form::KnownU32(_) => (Physical::INT32, Some(integer(32))),
            Form::Flag(_) => (Physical::BOOLEAN, None),
            Form::Text(_) | Form::KnownText(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match self.form {
            Form::KnownU32(_) | Form::KnownText(_) => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let builder = Type::primitive_type_builder(self.name, physical);
        builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    }

    fn write(&self, rows: &[R], to: SerializedColumnWriter<'_>) -> Written {
        fn all<R, T, U>(rows: &[R], of: impl Fn(&R) -> T, into: impl Fn(T) -> U) -> Vec<Option<U>> {
            rows.iter().map(|row| Some(into(of(row)))).collect()
        }
        let text = |text: String| ByteArray::from(text.into_bytes());
        match self.form {
            // The bits of an unsigned number are stored as a signed one.
            Form::U64(of) => put::<Int64Type>(all(rows, of, |n| n as i64), false, to),
            Form::U32(of) => put::<Int32Type>(all(rows, of, |n| n as i32), false, to),
            Form::Flag(of) => put::<BoolType>(all(rows, of, |flag| flag), false, to),
            Form::Text(of) => put::<ByteArrayType>(all(rows, of, text), false, to),
            Form::KnownU32(of) => {
                let values = rows.iter().map(|row| of(row).map(|n| n as i32));
                put::<Int32Type>(values.collect(), true, to)
            }
            Form::KnownText(of) => {
                put::<ByteArrayType>(rows.iter().map(|row| of(row).map(text)).collect(), true, to)
            }
        }
    }
}

type Written = std::result::Result<(), ParquetError>;

/// Writes the values of a column, which may be null if it `is_optional`.
fn put<T: DataType>(
    values: Vec<Option<T::T>>,
    is_optional: bool,
    mut to: SerializedColumnWriter<'_>,
) -> Written {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    to.typed::<T>().write_batch(&values, is_optional.then_some(&levels[..]), None)?;
    to.close()
}

/// An event in a slice that counted it.
struct SliceRow<'a> {
    of: &'a Recording,
    slice: &'a SliceRecord,
    counted: Counted,
}

/// A sample.
struct SampleRow<'a> {
    of: &'a Recording,
    sample: &'a SampleRecord,
    events: u64,
    function: String,
    stack: Option<String>,
}

/// A column: name, unit, form with its value, meaning.
macro_rules! columns {
    ($($name:ident [$unit:expr] $form:ident($value:expr): $about:literal;)+) => {
        vec![$(Column {
            name: stringify!($name),
            unit: $unit,
            about: $about,
            form: Form::$form($value),
        }),+]
    };
}

fn slice_columns<'a>() -> Vec<Column<SliceRow<'a>>> {
    columns! {
        session [NAME] U32(|r| r.slice.session): "The session.";
        program [NAME] KnownU32(|r| Some(r.of.session(r.slice.session)?.program)):
            "The number of the program that the session measured.";
        program_name [NAME] KnownText(|r| Some(r.of.session(r.slice.session)?.name.clone())):
            "That program's name.";
        event [NAME] Text(|r| r.counted.name.clone()): "The event.";
        count ["events"] U64(|r| r.counted.count): "How often the event happened in the slice.";
        cycles ["core cycles"] U64(|r| r.slice.cycles):
            "Cycles of the slice, at the session's privilege.";
        instructions ["instructions"] U64(|r| r.slice.instructions):
            "Instructions of the slice, at the session's privilege.";
        start_ns ["nanoseconds"] U64(|r| r.of.ns(r.slice.start_tsc)):
            "When counting began, from the trace's earliest time stamp on.";
        end_ns ["nanoseconds"] U64(|r| r.of.ns(r.slice.end_tsc)):
            "When the counters were read, from the trace's earliest time stamp on.";
        start_tsc ["TSC ticks"] U64(|r| r.slice.start_tsc): "TSC when counting began.";
        end_tsc ["TSC ticks"] U64(|r| r.slice.end_tsc): "TSC when the counters were read.";
        sequence ["slices"] U64(|r| r.slice.sequence):
            "The number of the slice within the session, from 0.";
        group [NAME] U32(|r| r.slice.group.into()): "The group that was counted.";
        mode [NAME] Text(|r| r.slice.mode.word().into()):
            "The privilege that was counted: user, kernel or full.";
        end [NAME] Text(|r| r.slice.end.word().into()):
            "Why the slice ended: overflow, switched-out or stopped.";
        slice_multiplier ["slice lengths"] U32(|r| r.slice.slice_multiplier):
            "The length of the slice in units of the session's slice length.";
        cpu [NAME] U32(|r| r.slice.cpu.into()): "The CPU.";
        address_space ["physical address"] U64(|r| r.slice.address_space): "The address space.";
    }
}

fn sample_columns<'a>() -> Vec<Column<SampleRow<'a>>> {
    columns! {
        session [NAME] U32(|r| r.sample.session): "The session.";
        program [NAME] KnownU32(|r| Some(r.of.session(r.sample.session)?.program)):
            "The number of the program that the session measured.";
        program_name [NAME] KnownText(|r| Some(r.of.session(r.sample.session)?.name.clone())):
            "That program's name.";
        thread [NAME] U32(|r| r.sample.thread): "The thread that ran, by its number in the system.";
        event [NAME] Text(|r| r.of.event_name(r.sample.session, r.sample.event)):
            "The event that was sampled.";
        events ["events"] U64(|r| r.events): "Events since the last sample of the same event.";
        count ["events"] U64(|r| r.sample.count):
            "The event's count at the sample, exact or estimated.";
        cycles ["core cycles"] U64(|r| r.sample.cycles): "Cycles since the session began.";
        instructions ["instructions"] U64(|r| r.sample.instructions):
            "Instructions since the session began.";
        ns ["nanoseconds"] U64(|r| r.of.ns(r.sample.tsc)):
            "When the sample was taken, from the trace's earliest time stamp on.";
        tsc ["TSC ticks"] U64(|r| r.sample.tsc): "TSC when the sample was taken.";
        address ["address"] U64(|r| r.sample.address):
            "The instruction pointer at the interrupt; 0 if it is not known.";
        function [NAME] Text(|r| r.function.clone()):
            "The innermost function at the address; the address where no symbol is known.";
        stack [NAME] KnownText(|r| r.stack.clone()):
            "The functions from the outermost caller to the innermost, separated by semicolons; null \
             if the stack was not recorded.";
        user ["yes or no"] Flag(|r| r.sample.user): "Whether the address is in ring 3.";
        cpu [NAME] U32(|r| r.sample.cpu.into()): "The CPU.";
        address_space ["physical address"] U64(|r| r.sample.address_space): "The address space.";
    }
}

/// The table of slices.
///
/// # Errors
/// The table cannot be encoded.
pub(super) fn slices(of: &Recording) -> Result<Vec<u8>> {
    let rows =
        |slice| of.counted(slice).into_iter().map(move |counted| SliceRow { of, slice, counted });
    let rows: Vec<SliceRow<'_>> = of.records.slices.iter().flat_map(rows).collect();
    write(of, "slices", &slice_columns(), &rows)
}

/// The table of samples.
///
/// # Errors
/// The table cannot be encoded.
pub(super) fn samples(of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    let row = |(sample, events)| {
        let function = symbolizer.function(of, sample);
        let is_recorded = of.stacks.of_sample(sample).is_some()
            || !of.branches.calls_of_sample(sample).is_empty();
        let stack = is_recorded.then(|| symbolizer.stack_functions(of, sample).join(";"));
        SampleRow { of, sample, events, function, stack }
    };
    let rows: Vec<SampleRow<'_>> = of.weighted_samples().into_iter().map(row).collect();
    write(of, "samples", &sample_columns(), &rows)
}

fn write<R>(of: &Recording, table: &str, columns: &[Column<R>], rows: &[R]) -> Result<Vec<u8>> {
    encode(of, table, columns, rows).map_err(|error| {
        Failure::new(ExitStatus::HostError, format!("the table cannot be encoded: {error}"))
    })
}

fn encode<R>(
    of: &Recording,
    table: &str,
    columns: &[Column<R>],
    rows: &[R],
) -> std::result::Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(Column::schema).collect::<std::result::Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder(table).with_fields(fields).build()?);
    let about: Map<String, Value> = columns
        .iter()
        .map(|c| (c.name.to_owned(), json!({ "unit": c.unit, "about": c.about })))
        .collect();
    let metadata = [
        ("tally.table", table.to_owned()),
        ("tally.run", of.run.json().to_string()),
        ("tally.columns", Value::Object(about).to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tally ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = file.next_row_group()?;
        let mut left = columns.iter();
        while let (Some(to), Some(column)) = (group.next_column()?, left.next()) {
            column.write(rows, to)?;
        }
        group.close()?;
    }
    file.into_inner()
}
