/* Regular expressions of Python's package `regex`, translated to JavaScript's flag v.

Models are split into words by the same patterns as in Python, and constraints name words by patterns. What JavaScript
cannot express raises a PatternError. */

export class PatternError extends Error {}

const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200c\\u200d"; // \w of `regex`
const SPACE = "\\p{White_Space}";
const CLASSES = { w: WORD, d: "\\p{Nd}", s: SPACE };
const BOUNDARY = `(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}])`;
const ASSERTIONS = { A: "(?<![^])", Z: "(?![^])", b: `(?:${BOUNDARY})`, B: `(?!${BOUNDARY})` };
const CONTROLS = { n: "\\n", r: "\\r", t: "\\t", f: "\\f", v: "\\v", a: "\\x07" };
const EQUAL_LETTERS = { i: "iİ", k: "kK", s: "sſ" }; // besides upper and lower case, as in `regex`
const QUANTIFIER = /(?:[*+?]|\{(\d*)(?:(,)(\d*))?\})([+?]?)/y;
const GROUP = /\((?:\?(?:(#[^)]*\))|P?<([A-Za-z]\w*)>|P=(\w+)\)|([:=!>]|<[=!])|i:|i\)))?/y;

/* Return {regexp, groups}: groups maps each group's name to its names in `regexp`, as names may occur several times.
`verbose` is the flag x; with `sets`, as in version 1 of `regex`, character sets can be nested. */
export function translate(source, { verbose = false, sets = false } = {}) {
  let at = 0;
  let count = 0; // of capturing groups
  let helpers = 0;
  let ignoreCase = false;
  const numbered = [];
  const groups = {};
  const fail = (what) => {
    throw new PatternError(`the pattern "${source.length > 60 ? `${source.slice(0, 60)}…` : source}" ${what}`);
  };
  const match = (expression) => {
    expression.lastIndex = at;
    const found = expression.exec(source);
    if (found) at += found[0].length;
    return found;
  };
  const capture = (name) => {
    const own = `_${++count}`;
    numbered[count] = own;
    if (name) (groups[name] ??= []).push(own);
    return `(?<${own}>`;
  };
  const skip = () => {
    if (verbose) match(/(?:\s|#[^\n]*)*/y);
  };

  /* Possessive: what a lookahead captured is not given up again. */
  const possessive = (body) => {
    const name = `x${++helpers}`;
    return `(?=(?<${name}>${body}))\\k<${name}>`;
  };

  function alternatives(fold) {
    let out = "";
    for (skip(); at < source.length && source[at] !== ")"; skip()) {
      if (source[at] === "|") {
        out += source[at++];
        continue;
      }
      const atom = parseAtom(fold);
      skip();
      out += quantified(atom);
    }
    return out;
  }

  function quantified(atom) {
    const found = match(QUANTIFIER);
    if (!found || (found[0][0] === "{" && !found[1] && !found[3])) {
      if (found) at -= found[0].length; // a literal {
      return atom;
    }
    if (!atom) fail("repeats nothing");
    const [whole, least, comma, most, suffix] = found;
    const times = whole[0] === "{" ? `{${least || 0}${comma ?? ""}${most ?? ""}}` : whole[0];
    if (suffix === "+") return possessive(`(?:${atom})${times}`);
    return `(?:${atom})${times}${suffix}`;
  }

  function parseAtom(fold) {
    const character = source[at];
    if (character === "(") return parseGroup(fold);
    if (character === "[") return parseSet(fold);
    if (character === "\\") return escape(false, fold);
    at += 1;
    if (character === ".") return "[^\\n]";
    if (character === "^") return ASSERTIONS.A;
    if (character === "$") return "(?=\\n?(?![^]))";
    const point = source.codePointAt(at - 1);
    if (point > 0xffff) at += 1;
    return literal(String.fromCodePoint(point), fold);
  }

  function literal(character, fold) {
    if (fold && /\p{L}/v.test(character)) return `[${cases(character)}]`;
    return character.replace(/[\^$\\.*+?()[\]{}|\/]/u, "\\$&");
  }

  function parseGroup(fold) {
    const found = match(GROUP);
    if (!found || (found[0] === "(" && source[at] === "?")) fail(`has a group that is not supported in the browser`);
    const [whole, comment, name, reference, kind] = found;
    if (comment) return "";
    if (reference) return `(?:${(groups[reference] ?? fail("refers to an unknown group")).map((one) => `\\k<${one}>`).join("")})`;
    if (whole === "(?i)") {
      if (at > 4) fail("sets (?i) after its start");
      ignoreCase = true;
      return "";
    }
    const opening = whole === "(" || name ? capture(name) : kind && kind !== ">" ? `(?${kind}` : "(?:";
    const body = alternatives(fold || whole === "(?i:");
    if (source[at++] !== ")") fail("has a group that is not closed");
    return kind === ">" ? possessive(body) : `${opening}${body})`;
  }

  /* After a backslash; `inside` a set or not. */
  function escape(inside, fold) {
    const code = match(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/y);
    if (code) return `\\u{${(code[1] ?? code[2] ?? code[3]).replace(/^0+(?=.)/, "")}}`;
    const property = match(/\\([pP])\{(\^?)(\w+)\}/y);
    if (property) return propertyOf(property[2] ? "P" : property[1], property[3]);
    const back = inside ? null : match(/\\([1-9]\d?)/y);
    if (back) return numbered[back[1]] ? `(?:\\k<${numbered[back[1]]}>)` : fail("refers to an unknown group");
    const character = source[at + 1] ?? fail("ends with a backslash");
    at += 2;
    const lower = character.toLowerCase();
    if (CLASSES[lower]) return `[${character === lower ? "" : "^"}${CLASSES[lower]}]`;
    if (CONTROLS[character]) return CONTROLS[character];
    if (!inside && ASSERTIONS[character]) return ASSERTIONS[character];
    if (/[A-Za-z0-9]/.test(character)) fail(`has \\${character}, which is not supported in the browser`);
    return inside ? member(character) : literal(character, fold);
  }

  function propertyOf(letter, name) {
    for (const form of [name, `Script=${name}`]) {
      try {
        new RegExp(`\\p{${form}}`, "v");
        return `\\${letter}{${form}}`;
      } catch {} // not a property of this name
    }
    return fail(`has the property ${name}, which is not supported in the browser`);
  }

  function parseSet(fold) {
    at += 1;
    let complement = "";
    if (source[at] === "^") complement = source[at++];
    const unions = [""]; // joined by ||
    let members = "";
    const close = () => {
      unions[unions.length - 1] += `[${members}]`;
      members = "";
    };
    for (let first = true; source[at] !== "]" || first; first = false) {
      if (at >= source.length) fail("has a set that is not closed");
      const operator = sets && match(/--|&&|\|\|/y)?.[0];
      if (operator) {
        close();
        if (operator === "||") unions.push("");
        else unions[unions.length - 1] += operator;
      } else if (sets && source[at] === "[") members += parseSet(fold);
      else members += setItem(fold);
    }
    at += 1;
    close();
    return `[${complement}${unions.map((union) => `[${union}]`).join("")}]`;
  }

  function setItem(fold) {
    const low = setCharacter();
    const isRange = source[at] === "-" && source[at + 1] !== "]" && !(sets && source[at + 1] === "-");
    if (!isRange) return fold && /^\p{L}$/v.test(low) ? cases(low) : low;
    at += 1;
    const range = `${low}-${setCharacter()}`;
    return fold && /^[a-z]-[a-z]$/.test(range) ? range + range.toUpperCase() : range;
  }

  function setCharacter() {
    if (source[at] === "\\") return escape(true, false);
    const character = String.fromCodePoint(source.codePointAt(at));
    at += character.length;
    return member(character);
  }

  const out = alternatives(false);
  if (at < source.length) fail("has a ) without (");
  try {
    return { regexp: new RegExp(out, ignoreCase ? "gvi" : "gv"), groups };
  } catch {
    return fail("is not supported in the browser");
  }
}

const member = (character) => (/[\-&!#%,:;<=>@`~\^$\\.*+?()[\]{}|\/]/u.test(character) ? `\\${character}` : character);

const cases = (letter) => {
  const lower = letter.toLowerCase();
  return EQUAL_LETTERS[lower] ? `${EQUAL_LETTERS[lower]}${letter.toUpperCase()}` : `${lower}${letter.toUpperCase()}`;
};
