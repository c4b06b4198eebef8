//! The profiles of the virtual PMU that its check guest runs on.

use clap::ValueEnum;

/// A machine that the virtual PMU can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Intel, version 5
    IcelakeServer,
    /// Intel, version 5
    SapphireRapids,
    /// AMD, core extension
    Zen3,
    /// AMD, PerfMonV2
    Zen4,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 4] =
        [Profile::IcelakeServer, Profile::SapphireRapids, Profile::Zen3, Profile::Zen4];

    /// As the plugin calls it.
    pub fn name(self) -> &'static str {
        match self {
            Profile::IcelakeServer => "icelake-server",
            Profile::SapphireRapids => "sapphire-rapids",
            Profile::Zen3 => "zen3",
            Profile::Zen4 => "zen4",
        }
    }

    /// The sets of more options that it is checked with: every pipeline and mode on some profile.
    pub fn variants(self) -> &'static [&'static str] {
        match self {
            Profile::IcelakeServer => &["", ",counters=8,fixed=2,width=40", ",pipeline=ooo"],
            Profile::SapphireRapids => &["", ",pipeline=ooo,mode=single"],
            Profile::Zen3 => &["", ",pipeline=ooo,mode=inorder"],
            Profile::Zen4 => &["", ",counters=4", ",pipeline=ooo"],
        }
    }

    /// The vendor that CPUID has to say.
    pub fn vendor(self) -> &'static str {
        match self {
            Profile::IcelakeServer | Profile::SapphireRapids => "GenuineIntel",
            Profile::Zen3 | Profile::Zen4 => "AuthenticAMD",
        }
    }
}
