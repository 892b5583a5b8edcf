//! Sets of characters: Perl's `\d`, POSIX's `[:alpha:]`, Unicode's `\p{Greek}`, by Go's names.

use std::fmt::Write;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

/// A set of characters. Surrogates, which Go's syntax can name but no text can hold, are left out.
#[derive(Debug, Clone)]
pub(super) struct Class(ClassUnicode);

impl Class {
    pub(super) fn empty() -> Self {
        Class(ClassUnicode::empty())
    }

    pub(super) fn range(low: u32, high: u32) -> Self {
        let mut class = Class::empty();
        class.insert(low, high);
        class
    }

    fn from_ranges(ranges: &[(char, char)]) -> Self {
        Class(ClassUnicode::new(
            ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)),
        ))
    }

    /// Adds the characters from `low` to `high`, both included.
    pub(super) fn insert(&mut self, low: u32, high: u32) {
        const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
        let low = if SURROGATES.contains(&low) { 0xE000 } else { low };
        let high = if SURROGATES.contains(&high) { 0xD7FF } else { high };
        if low > high {
            return;
        }
        if let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) {
            self.0.push(ClassUnicodeRange::new(low, high));
        }
    }

    pub(super) fn union(&mut self, other: &Class) {
        self.0.union(&other.0);
    }

    pub(super) fn negated(mut self) -> Self {
        self.0.negate();
        self
    }

    /// With every character, all those that differ from it only in case.
    pub(super) fn folded(mut self) -> Self {
        self.0.case_fold_simple();
        self
    }

    /// Writes the set as a bracketed class of plain ranges.
    pub(super) fn write(&self, out: &mut String) {
        if self.0.ranges().is_empty() {
            // The engine's way to say "no character at all".
            out.push_str("[a&&b]");
            return;
        }
        out.push('[');
        for range in self.0.ranges() {
            let (low, high) = (u32::from(range.start()), u32::from(range.end()));
            write!(out, "\\x{{{low:X}}}").expect("writing to a string cannot fail");
            if low < high {
                write!(out, "-\\x{{{high:X}}}").expect("writing to a string cannot fail");
            }
        }
        out.push(']');
    }
}

/// `\d`, `\s`, `\w`: ASCII only, as in Go. The letter is lower case.
pub(super) fn perl(letter: char) -> Option<Class> {
    let ranges: &[(char, char)] = match letter {
        'd' => &[('0', '9')],
        's' => &[('\t', '\n'), ('\x0C', '\r'), (' ', ' ')],
        'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        _ => return None,
    };
    Some(Class::from_ranges(ranges))
}

/// The class between `[:` and `:]`.
pub(super) fn posix(name: &str) -> Option<Class> {
    let ranges: &[(char, char)] = match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7F')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1F'), ('\x7F', '\x7F')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    };
    Some(Class::from_ranges(ranges))
}

/// The class that `\p{name}` stands for: a general category, by short or long name, or a script.
///
/// Names are compared as Go compares them: case, spaces, dashes and underscores do not matter for
/// categories, and scripts of more than one word cannot be named at all.
pub(super) fn unicode(name: &str) -> Option<Class> {
    let name = canonical(name);
    match name.as_str() {
        "Any" => return Some(Class::range(0, u32::from(char::MAX))),
        "Assigned" => return table("gc=Cn").map(Class::negated),
        "Ascii" => return Some(Class::range(0, 0x7F)),
        _ => {}
    }
    if let Some((short, _)) = CATEGORIES.iter().find(|(short, longs)| {
        canonical(short) == name || longs.iter().any(|l| canonical(l) == name)
    }) {
        return match *short {
            // No text holds a surrogate.
            "Cs" => Some(Class::empty()),
            short => table(&format!("gc={short}")),
        };
    }
    SCRIPTS.contains(&name.as_str()).then(|| table(&format!("sc={name}")))?
}

/// Looks a property up in the engine's tables.
fn table(property: &str) -> Option<Class> {
    let hir = regex_syntax::parse(&format!("\\p{{{property}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => Some(Class(class)),
        _ => None,
    }
}

/// Spaces, dashes and underscores gone; the first letter upper case, the others lower case.
fn canonical(name: &str) -> String {
    let mut canonical: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .collect::<String>()
        .to_ascii_lowercase();
    if let Some(first) = canonical.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    canonical
}

/// General categories: the short name, and the long ones.
const CATEGORIES: &[(&str, &[&str])] = &[
    ("C", &["Other"]),
    ("Cc", &["Control", "cntrl"]),
    ("Cf", &["Format"]),
    ("Cn", &["Unassigned"]),
    ("Co", &["Private_Use"]),
    ("Cs", &["Surrogate"]),
    ("L", &["Letter"]),
    ("LC", &["Cased_Letter"]),
    ("Ll", &["Lowercase_Letter"]),
    ("Lm", &["Modifier_Letter"]),
    ("Lo", &["Other_Letter"]),
    ("Lt", &["Titlecase_Letter"]),
    ("Lu", &["Uppercase_Letter"]),
    ("M", &["Mark", "Combining_Mark"]),
    ("Mc", &["Spacing_Mark"]),
    ("Me", &["Enclosing_Mark"]),
    ("Mn", &["Nonspacing_Mark"]),
    ("N", &["Number"]),
    ("Nd", &["Decimal_Number", "digit"]),
    ("Nl", &["Letter_Number"]),
    ("No", &["Other_Number"]),
    ("P", &["Punctuation", "punct"]),
    ("Pc", &["Connector_Punctuation"]),
    ("Pd", &["Dash_Punctuation"]),
    ("Pe", &["Close_Punctuation"]),
    ("Pf", &["Final_Punctuation"]),
    ("Pi", &["Initial_Punctuation"]),
    ("Po", &["Other_Punctuation"]),
    ("Ps", &["Open_Punctuation"]),
    ("S", &["Symbol"]),
    ("Sc", &["Currency_Symbol"]),
    ("Sk", &["Modifier_Symbol"]),
    ("Sm", &["Math_Symbol"]),
    ("So", &["Other_Symbol"]),
    ("Z", &["Separator"]),
    ("Zl", &["Line_Separator"]),
    ("Zp", &["Paragraph_Separator"]),
    ("Zs", &["Space_Separator"]),
];

/// The scripts Go can name.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];
