#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Writes unicode_sets_data.cpp: what \p{...} of a regular expression means, as the ECMAScript
// engine that runs this script has it, asked character by character. Names that it does not know
// are left out with a line on stderr.
//
// usage: node unicode_sets.mjs > unicode_sets_data.cpp

const CATEGORIES = `
  Cc|Control|cntrl Cf|Format Cn|Unassigned Co|Private_Use Cs|Surrogate Ll|Lowercase_Letter
  Lm|Modifier_Letter Lo|Other_Letter Lt|Titlecase_Letter Lu|Uppercase_Letter Mc|Spacing_Mark
  Me|Enclosing_Mark Mn|Nonspacing_Mark Nd|Decimal_Number|digit Nl|Letter_Number No|Other_Number
  Pc|Connector_Punctuation Pd|Dash_Punctuation Pe|Close_Punctuation Pf|Final_Punctuation
  Pi|Initial_Punctuation Po|Other_Punctuation Ps|Open_Punctuation Sc|Currency_Symbol
  Sk|Modifier_Symbol Sm|Math_Symbol So|Other_Symbol Zl|Line_Separator Zp|Paragraph_Separator
  Zs|Space_Separator`;

const BINARY = `
  Alphabetic|Alpha ASCII_Hex_Digit|AHex Bidi_Control|Bidi_C Bidi_Mirrored|Bidi_M
  Case_Ignorable|CI Cased Changes_When_Casefolded|CWCF Changes_When_Casemapped|CWCM
  Changes_When_Lowercased|CWL Changes_When_NFKC_Casefolded|CWKCF Changes_When_Titlecased|CWT
  Changes_When_Uppercased|CWU Dash Default_Ignorable_Code_Point|DI Deprecated|Dep Diacritic|Dia
  Emoji Emoji_Component|EComp Emoji_Modifier|EMod Emoji_Modifier_Base|EBase
  Emoji_Presentation|EPres Extended_Pictographic|ExtPict Extender|Ext Grapheme_Base|Gr_Base
  Grapheme_Extend|Gr_Ext Hex_Digit|Hex IDS_Binary_Operator|IDSB IDS_Trinary_Operator|IDST
  ID_Continue|IDC ID_Start|IDS Ideographic|Ideo Join_Control|Join_C
  Logical_Order_Exception|LOE Lowercase|Lower Math Noncharacter_Code_Point|NChar
  Pattern_Syntax|Pat_Syn Pattern_White_Space|Pat_WS Quotation_Mark|QMark Radical
  Regional_Indicator|RI Sentence_Terminal|STerm Soft_Dotted|SD Terminal_Punctuation|Term
  Unified_Ideograph|UIdeo Uppercase|Upper Variation_Selector|VS White_Space|space
  XID_Continue|XIDC XID_Start|XIDS`;

const SCRIPTS = `
  Adlam|Adlm Ahom Anatolian_Hieroglyphs|Hluw Arabic|Arab Armenian|Armn Avestan|Avst
  Balinese|Bali Bamum|Bamu Bassa_Vah|Bass Batak|Batk Bengali|Beng Beria_Erfe|Berf Bhaiksuki|Bhks
  Bopomofo|Bopo Brahmi|Brah Braille|Brai Buginese|Bugi Buhid|Buhd Canadian_Aboriginal|Cans
  Carian|Cari Caucasian_Albanian|Aghb Chakma|Cakm Cham Cherokee|Cher Chorasmian|Chrs Common|Zyyy
  Coptic|Copt|Qaac Cuneiform|Xsux Cypriot|Cprt Cypro_Minoan|Cpmn Cyrillic|Cyrl Deseret|Dsrt
  Devanagari|Deva Dives_Akuru|Diak Dogra|Dogr Duployan|Dupl Egyptian_Hieroglyphs|Egyp
  Elbasan|Elba Elymaic|Elym Ethiopic|Ethi Garay|Gara Georgian|Geor Glagolitic|Glag Gothic|Goth
  Grantha|Gran Greek|Grek Gujarati|Gujr Gunjala_Gondi|Gong Gurmukhi|Guru Gurung_Khema|Gukh
  Hangul|Hang Hanifi_Rohingya|Rohg Hanunoo|Hano Han|Hani Hatran|Hatr Hebrew|Hebr Hiragana|Hira
  Imperial_Aramaic|Armi Inherited|Zinh|Qaai Inscriptional_Pahlavi|Phli
  Inscriptional_Parthian|Prti Javanese|Java Kaithi|Kthi Kannada|Knda Katakana|Kana Kawi
  Kayah_Li|Kali Kharoshthi|Khar Khitan_Small_Script|Kits Khmer|Khmr Khojki|Khoj Khudawadi|Sind
  Kirat_Rai|Krai Lao|Laoo Latin|Latn Lepcha|Lepc Limbu|Limb Linear_A|Lina Linear_B|Linb Lisu
  Lycian|Lyci Lydian|Lydi Mahajani|Mahj Makasar|Maka Malayalam|Mlym Mandaic|Mand Manichaean|Mani
  Marchen|Marc Masaram_Gondi|Gonm Medefaidrin|Medf Meetei_Mayek|Mtei Mende_Kikakui|Mend
  Meroitic_Cursive|Merc Meroitic_Hieroglyphs|Mero Miao|Plrd Modi Mongolian|Mong Mro|Mroo
  Multani|Mult Myanmar|Mymr Nabataean|Nbat Nag_Mundari|Nagm Nandinagari|Nand New_Tai_Lue|Talu
  Newa Nko|Nkoo Nushu|Nshu Nyiakeng_Puachue_Hmong|Hmnp Ogham|Ogam Ol_Chiki|Olck Ol_Onal|Onao
  Old_Hungarian|Hung Old_Italic|Ital Old_North_Arabian|Narb Old_Permic|Perm Old_Persian|Xpeo
  Old_Sogdian|Sogo Old_South_Arabian|Sarb Old_Turkic|Orkh Old_Uyghur|Ougr Oriya|Orya Osage|Osge
  Osmanya|Osma Pahawh_Hmong|Hmng Palmyrene|Palm Pau_Cin_Hau|Pauc Phags_Pa|Phag Phoenician|Phnx
  Psalter_Pahlavi|Phlp Rejang|Rjng Runic|Runr Samaritan|Samr Saurashtra|Saur Sharada|Shrd
  Shavian|Shaw Siddham|Sidd Sidetic|Sidt SignWriting|Sgnw Sinhala|Sinh Sogdian|Sogd
  Sora_Sompeng|Sora Soyombo|Soyo Sundanese|Sund Sunuwar|Sunu Syloti_Nagri|Sylo Syriac|Syrc
  Tagalog|Tglg Tagbanwa|Tagb Tai_Le|Tale Tai_Tham|Lana Tai_Viet|Tavt Tai_Yo|Tayo Takri|Takr
  Tamil|Taml Tangsa|Tnsa Tangut|Tang Telugu|Telu Thaana|Thaa Thai Tibetan|Tibt Tifinagh|Tfng
  Tirhuta|Tirh Todhri|Todr Tolong_Siki|Tols Toto Tulu_Tigalari|Tutg Ugaritic|Ugar Vai|Vaii
  Vithkuqi|Vith Wancho|Wcho Warang_Citi|Wara Yezidi|Yezi Yi|Yiii Zanabazar_Square|Zanb`;

const words = (text) => text.trim().split(/\s+/);

// Where membership changes, from not being a member at 0 on.
function changes(expression) {
  const places = [];
  let inside = false;
  for (let c = 0; c <= 0x110000; ++c) {
    const now = c <= 0x10FFFF && expression.test(String.fromCodePoint(c));
    if (now !== inside) places.push(c);
    inside = now;
  }
  return places;
}

const data = [];
const rows = [];

function add(kind, names, places) {
  rows.push([kind, names, data.length]);
  let before = 0;
  for (const place of places) {
    let step = place - before;
    before = place;
    for (; step >= 128; step >>= 7) data.push((step & 127) | 128);
    data.push(step);
  }
}

function expressionOf(text) {
  try {
    return new RegExp(`^\\p{${text}}$`, "u");
  } catch {
    process.stderr.write(`not known here: ${text}\n`);
    return null;
  }
}

for (const names of words(CATEGORIES)) add("c", names, changes(expressionOf(`gc=${names.split("|")[0]}`)));
for (const names of words(BINARY)) {
  const expression = expressionOf(names.split("|")[0]);
  if (expression) add("b", names, changes(expression));
}
for (const names of words(SCRIPTS)) {
  const name = names.split("|")[0];
  const expression = expressionOf(`sc=${name}`);
  if (!expression) continue;
  const script = changes(expression);
  const extensions = changes(expressionOf(`scx=${name}`));
  add("s", names, script);
  if (JSON.stringify(script) !== JSON.stringify(extensions)) add("x", names, extensions);
}

const lines = [];
let line = "   ";
for (const byte of data) {
  if (line.length + 5 > 100) {
    lines.push(line);
    line = "   ";
  }
  line += ` ${byte},`;
}
lines.push(line);
process.stdout.write(`// SPDX-License-Identifier: Apache-2.0
// Sets of characters by Unicode property, Unicode ${process.versions.unicode}. Written by unicode_sets.mjs.
#include "grammar/regex/unicode_sets_data.h"

namespace gen::grammar {
namespace {

// clang-format off
constexpr uint8_t kData[] = {
${lines.join("\n")}
};

constexpr UnicodeSet kSets[] = {
${rows.map(([kind, names, at]) => `    {'${kind}', "${names}", ${at}},`).join("\n")}
};
// clang-format on

}  // namespace

std::span<const uint8_t> unicode_data() noexcept { return kData; }
std::span<const UnicodeSet> unicode_sets() noexcept { return kSets; }

}  // namespace gen::grammar
`);
