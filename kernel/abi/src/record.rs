//! Self-describing records. [`record!`] describes each type once; the macro generates the struct,
//! its encoder, its decoder, and the description at the head of each trace.
//!
//! A record is a header ([`crate::ring::Header`]: kind, length, time stamp), followed by the fields
//! in order, packed from the lowest bit up. A field that would cross the end of a word begins in
//! the next word. A list of words may follow; it takes the rest of the record.

use core::fmt;

use crate::{Malformed, Mode};

/// The first line of a trace's description.
pub const MAGIC: &str = "tally trace 1\n";

/// How a decoder interprets a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An unsigned number of this many bits.
    Number(u32),
    /// An address of 64 bits.
    Address,
    /// Yes or no, in 8 bits.
    Flag,
    /// Choice of a name, by its index, in 8 bits.
    Choice(&'static [&'static str]),
    /// A system call by its number, of 64 bits ([`crate::syscall::name`]).
    Syscall,
    /// Result of a system call, of 64 bits: negative for an error ([`crate::syscall::errno::name`],
    /// [`crate::Error`]).
    Result,
    /// A signal by Linux's number, of 8 bits ([`crate::signal::name`]).
    Signal,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Number(bits) => write!(f, "u{bits}"),
            Form::Address => f.write_str("address"),
            Form::Flag => f.write_str("flag"),
            Form::Syscall => f.write_str("syscall"),
            Form::Result => f.write_str("result"),
            Form::Signal => f.write_str("signal"),
            Form::Choice(names) => {
                for (i, name) in names.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "|" })?;
                    f.write_str(name)?;
                }
                Ok(())
            }
        }
    }
}

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// The field's name.
    pub name: &'static str,
    /// The decoder's interpretation of the field.
    pub form: Form,
    /// The lines of the field's documentation.
    pub about: &'static [&'static str],
}

/// A type of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordType {
    /// The type's number, in the header of its records.
    pub kind: u8,
    /// The type's name.
    pub name: &'static str,
    /// The lines of the type's documentation.
    pub about: &'static [&'static str],
    /// The time stamp in the header.
    pub stamp: FieldType,
    /// The fields after the header.
    pub fields: &'static [FieldType],
    /// The list after the fields, if the type has one.
    pub list: Option<FieldType>,
    /// Maximum number of words of the list.
    pub most: usize,
}

/// Writes the text at the head of a trace: [`MAGIC`], then for each type a line
/// `record KIND NAME: …` and lines `stamp`, `field` and `list`, each with `NAME FORM: …`, then an
/// empty line. A form is `u8` to `u64`, `address`, `flag`, `syscall`, `result`, `signal`, or the
/// names of a choice, separated by bars.
///
/// # Errors
/// `out` fails.
pub fn describe(types: &[&RecordType], out: &mut impl fmt::Write) -> fmt::Result {
    out.write_str(MAGIC)?;
    for t in types {
        writeln!(out, "record {} {}: {}", t.kind, t.name, Sentence(t.about))?;
        let mut line = |word: &str, field: &FieldType| {
            writeln!(out, "{word} {} {}: {}", field.name, field.form, Sentence(field.about))
        };
        line("stamp", &t.stamp)?;
        t.fields.iter().try_for_each(|field| line("field", field))?;
        t.list.iter().try_for_each(|list| line("list", list))?;
    }
    out.write_char('\n')
}

/// Joins lines of documentation by blanks.
#[derive(Clone, Copy, Debug)]
pub struct Sentence(pub &'static [&'static str]);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " " })?;
            f.write_str(line.trim())?;
        }
        Ok(())
    }
}

/// A type that a field can have.
pub(crate) trait Field: Copy {
    /// The field's width in bits.
    const BITS: u32;
    /// The decoder's interpretation of the field.
    const FORM: Form;
    /// Encodes the value in the low [`Self::BITS`] bits.
    fn bits(self) -> u64;
    /// Decodes a value from the low [`Self::BITS`] bits; the others may have any value.
    fn from_bits(bits: u64) -> Result<Self, Malformed>;
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Field for $type {
            const BITS: u32 = $type::BITS;
            const FORM: Form = Form::Number($type::BITS);

            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self)
            }

            fn from_bits(bits: u64) -> Result<Self, Malformed> {
                Ok(bits as $type)
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64);

impl Field for bool {
    const BITS: u32 = 8;
    const FORM: Form = Form::Flag;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    fn from_bits(bits: u64) -> Result<Self, Malformed> {
        match bits as u8 {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Field for Mode {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&Mode::WORDS);

    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Result<Self, Malformed> {
        Mode::from_word(bits & 0xff)
    }
}

/// The first bit of a field of `bits` bits whose predecessor ends before bit `at` of the record.
pub const fn place(at: u32, bits: u32) -> u32 {
    if at % 64 + bits > 64 { at.next_multiple_of(64) } else { at }
}

/// Describes a type of records: `Name = KIND "name", stamp field "about" { fields }`. With
/// `list field[MOST] of count "about"` a list follows the fields. The struct then has an array
/// `field` of `MOST` entries, and `count`, the number of valid ones.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $Name:ident = $kind:literal $name:literal, stamp $stamp:ident $stamp_about:literal
        $(, list $list:ident[$most:expr] of $count:ident $list_about:literal)? {$(
            $(#[doc = $field_about:literal])+
            $field:ident: $Type:ty $(as $form:ident)?,
        )+}
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $Name {
            #[doc = $stamp_about]
            pub $stamp: u64,
            $(
                $(#[doc = $field_about])+
                pub $field: $Type,
            )+
            $(
                #[doc = concat!("Valid entries of `", stringify!($list), "`.")]
                pub $count: u8,
                #[doc = $list_about]
                pub $list: [u64; $most],
            )?
        }

        impl $Name {
            /// The number of the record's kind.
            pub const KIND: u8 = $kind;
            /// The record's description.
            pub const TYPE: RecordType = RecordType {
                kind: $kind,
                name: $name,
                about: &[$($about),+],
                stamp: FieldType {
                    name: stringify!($stamp),
                    form: Form::Number(64),
                    about: &[$stamp_about],
                },
                fields: &[$(FieldType {
                    name: stringify!($field),
                    form: record!(@form $Type $(, $form)?),
                    about: &[$($field_about),+],
                }),+],
                list: record!(@list $($list $list_about)?),
                most: 0 $(+ $most)?,
            };
            /// Number of words of the record's fields.
            pub const HEAD: usize = {
                let mut at = 0;
                $(at = place(at, <$Type as Field>::BITS) + <$Type as Field>::BITS;)+
                at.div_ceil(64) as usize
            };

            /// Encodes the record's fields.
            #[inline(always)]
            pub fn head(&self) -> [u64; Self::HEAD] {
                let mut words = [0; Self::HEAD];
                let mut at = 0;
                $(
                    at = place(at, <$Type as Field>::BITS);
                    words[(at / 64) as usize] |= self.$field.bits() << (at % 64);
                    at += <$Type as Field>::BITS;
                )+
                let _ = at;
                words
            }

            /// The valid entries of the record's list.
            #[inline(always)]
            pub fn tail(&self) -> &[u64] {
                $(if let Some(list) = self.$list.get(..usize::from(self.$count)) {
                    return list;
                })?
                &[]
            }

            /// Decodes the words after a header of this kind with this time stamp.
            ///
            /// # Errors
            /// A field's value is unknown, or the number of words is wrong.
            pub fn decode($stamp: u64, words: &[u64]) -> Result<Self, Malformed> {
                let (head, tail) = words.split_first_chunk::<{ Self::HEAD }>().ok_or(Malformed)?;
                let mut at = 0;
                $(
                    at = place(at, <$Type as Field>::BITS);
                    let $field = <$Type as Field>::from_bits(head[(at / 64) as usize] >> (at % 64))?;
                    at += <$Type as Field>::BITS;
                )+
                let _ = at;
                let most = 0 $(+ $most)?;
                if tail.len() > most {
                    return Err(Malformed);
                }
                $(
                    let $count = tail.len() as u8;
                    let mut $list = [0; $most];
                    $list[..tail.len()].copy_from_slice(tail);
                )?
                Ok($Name { $stamp, $($field,)+ $($count, $list)? })
            }
        }
    };
    (@form $Type:ty) => { <$Type as Field>::FORM };
    (@form $Type:ty, $form:ident) => { Form::$form };
    (@list) => { None };
    (@list $list:ident $about:literal) => {
        Some(FieldType { name: stringify!($list), form: Form::Number(64), about: &[$about] })
    };
}

pub(crate) use record;
