//! Which processor has which table: Intel's `mapfile.csv`, and AMD's ranges of models.

use std::collections::BTreeMap;

/// A processor with its own table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processor {
    /// The vendor's name of the table.
    pub(crate) name: String,
    /// Signatures, separated by commas: family (decimal), models (hexadecimal), steppings, and, of
    /// a hybrid processor, core type and native model: `6-55/0..4`, `6-97@40.1`, `25-10..1F`.
    pub(crate) signatures: String,
}

/// Intel's processors, by the rows of `mapfile.csv` whose table `has_file`. A stem such as
/// `icelakex` stands for the file `icelakex_core.json`.
pub(crate) fn intel(
    mapfile: &str,
    has_file: impl Fn(&str) -> bool,
) -> Result<Vec<Processor>, String> {
    let mut signatures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in mapfile.lines().skip(1).filter(|row| !row.trim().is_empty()) {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let [of, _version, path, kind, core, native, ..] = fields[..] else {
            return Err(format!("mapfile.csv: cannot read {row}"));
        };
        let stem = match kind {
            "core" | "hybridcore" => {
                path.rsplit('/').next().and_then(|it| it.strip_suffix(".json"))
            }
            "uncore"
            | "uncore experimental"
            | "offcore"
            | "fp_arith_inst"
            | "metrics"
            | "retire latency" => continue,
            _ => return Err(format!("mapfile.csv: '{kind}' is not known: {row}")),
        };
        let Some(stem) = stem.map(|it| it.trim_end_matches("_core")).filter(|it| has_file(it))
        else {
            continue;
        };
        let signature = signature(of, core, native);
        let signature = signature.ok_or_else(|| format!("mapfile.csv: cannot read {row}"))?;
        signatures.entry(stem.into()).or_default().push(signature);
    }
    let processor = |(name, signatures): (String, Vec<String>)| Processor {
        name,
        signatures: signatures.join(","),
    };
    Ok(signatures.into_iter().map(processor).collect())
}

/// Signature of a row: `GenuineIntel-6-55-[01234]`, core type and native model such as `0x40` and
/// `0x000001`.
fn signature(of: &str, core: &str, native: &str) -> Option<String> {
    let mut parts = of.strip_prefix("GenuineIntel-")?.split('-');
    let (family, model, steppings) = (parts.next()?, parts.next()?, parts.next());
    family.parse::<u16>().ok()?;
    u8::from_str_radix(model, 16).ok()?;
    let mut signature = format!("{family}-{model}");
    if let Some(list) = steppings {
        let list = list.strip_prefix('[')?.strip_suffix(']')?;
        let (first, last) = (list.chars().next()?, list.chars().last()?);
        let number = |digit: char| digit.to_digit(16);
        // The list has no gap.
        if number(last)? - number(first)? + 1 != list.len() as u32 {
            return None;
        }
        signature += &format!("/{first}..{last}");
    }
    if !core.is_empty() {
        let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        signature += &format!("@{:x}.{:x}", number(core)?, number(native)?);
    }
    Some(signature)
}

/// AMD's processors: table's name, file, signatures. Hygon's family 24 is Zen 1 (Linux,
/// arch/x86/events/amd/core.c).
pub(crate) const AMD: [(&str, &str, &str); 6] = [
    ("zen1", "fam17h_zen1", "23-00..2F,24-00..FF"),
    ("zen2", "fam17h_zen2", "23-30..FF"),
    ("zen3", "fam19h_zen3", "25-00..0F,25-20..5F"),
    ("zen4", "fam19h_zen4", "25-10..1F,25-60..FF"),
    ("zen5", "fam1ah_zen5", "26-00..4F,26-60..7F"),
    ("zen6", "fam1ah_zen6", "26-50..5F,26-80..FF"),
];

/// Microarchitecture and libpfm4's names of each table.
pub(crate) const KNOWN: [(&str, &str, &str); 42] = [
    ("alderlake_goldencove", "GoldenCove", "adl_glc"),
    ("alderlake_gracemont", "Gracemont", "adl_grt"),
    ("arrowlake_crestmont", "Crestmont", ""),
    ("arrowlake_lioncove", "LionCove", ""),
    ("arrowlake_skymont", "Skymont", ""),
    ("broadwell", "Broadwell", "bdw"),
    ("broadwellde", "Broadwell", "bdw"),
    ("broadwellx", "Broadwell", "bdw_ep"),
    ("cascadelakex", "Skylake", "clx"),
    ("clearwaterforest", "Skymont", ""),
    ("elkhartlake", "Tremont", "tmt"),
    ("emeraldrapids", "GoldenCove", "emr,spr"),
    ("goldmont", "Goldmont", "glm"),
    ("goldmontplus", "GoldmontPlus", "glm"),
    ("grandridge", "Crestmont", ""),
    ("graniterapids", "RedwoodCove", "gnr"),
    ("haswell", "Haswell", "hsw"),
    ("haswellx", "Haswell", "hsw_ep"),
    ("icelake", "SunnyCove", "icl"),
    ("icelakex", "SunnyCove", "icx"),
    ("knightslanding", "KnightsLanding", "knl,knm"),
    ("lunarlake_lioncove", "LionCove", ""),
    ("lunarlake_skymont", "Skymont", ""),
    ("meteorlake_crestmont", "Crestmont", ""),
    ("meteorlake_redwoodcove", "RedwoodCove", ""),
    ("novalake_arcticwolf", "ArcticWolf", ""),
    ("novalake_coyotecove", "CoyoteCove", ""),
    ("pantherlake_cougarcove", "LionCove", ""),
    ("pantherlake_darkmont", "Skymont", ""),
    ("rocketlake", "SunnyCove", "icl"),
    ("sapphirerapids", "GoldenCove", "spr"),
    ("sierraforest", "Crestmont", ""),
    ("skylake", "Skylake", "skl"),
    ("skylakex", "Skylake", "skx"),
    ("snowridgex", "Tremont", "tmt"),
    ("tigerlake", "SunnyCove", "icl"),
    ("zen1", "Zen1", "amd64_fam17h_zen1"),
    ("zen2", "Zen2", "amd64_fam17h_zen2"),
    ("zen3", "Zen3", "amd64_fam19h_zen3"),
    ("zen4", "Zen4", "amd64_fam19h_zen4"),
    ("zen5", "Zen5", "amd64_fam1ah_zen5"),
    ("zen6", "Zen6", "amd64_fam1ah_zen6"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_signatures() {
        let map = "Family-model,Version,Filename,EventType,Core Type,Native Model ID\n\
            GenuineIntel-6-55-[01234],V1,/SKX/events/skylakex_core.json,core,,\n\
            GenuineIntel-6-97,V1,/ADL/events/alderlake_goldencove_core.json,hybridcore,0x40,0x000001,Core\n\
            GenuineIntel-6-BE,V1,/ADL/events/alderlake_goldencove_core.json,core,,\n\
            GenuineIntel-6-1C,V5,/BNL/events/bonnell_core.json,core,,\n\
            GenuineIntel-6-55-[01234],V1,/SKX/metrics/x.json,metrics,,\n";
        let all = intel(map, |stem| stem != "bonnell").unwrap();
        let lines = all.iter().map(|it| (it.name.as_str(), it.signatures.as_str()));
        let want = [("alderlake_goldencove", "6-97@40.1,6-BE"), ("skylakex", "6-55/0..4")];
        assert_eq!(lines.collect::<Vec<_>>(), want);
        for bad in ["[0124],V1,/a/b_core.json,core,,", "[01],V1,/a/b_core.json,other,,"] {
            assert!(intel(&format!("\nGenuineIntel-6-55-{bad}"), |_| true).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_table_is_known_once() {
        assert!(KNOWN.is_sorted_by_key(|(name, ..)| name));
    }
}
