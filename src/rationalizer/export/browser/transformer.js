/* Transformers, run by onnxruntime-web; the inputs of the graphs are those of `rationalizer.export.subword_inputs`. */

const MAX_SUBWORDS = 16; // per word
const MAX_CHARACTERS = 100; // of a word; longer ones are unknown
const SPACE = /\p{White_Space}/u;
const CONTROL = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u;
const CHINESE = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;

/* The tokenizer of BERT: the part of the library `tokenizers` that its file describes. */
export class WordPieces {
  constructor({ normalizer, model }, unknown) {
    Object.assign(this, { normalizer, vocabulary: model.vocab, prefix: model.continuing_subword_prefix, unknown });
    this.known = new Map();
  }

  pieces(word) {
    let found = this.known.get(word);
    if (found === undefined) {
      found = this.normalized(word).flatMap((part) => this.split(part)).slice(0, MAX_SUBWORDS);
      if (!found.length) found = [this.unknown ?? 0];
      if (this.known.size > 50_000) this.known.clear();
      this.known.set(word, found);
    }
    return found;
  }

  /* The parts between white space; each sign of punctuation is a part of its own. */
  normalized(word) {
    const { clean_text: clean, handle_chinese_chars: chinese, strip_accents: strip, lowercase } = this.normalizer;
    let letters = [...word];
    if (clean) letters = letters.filter((one) => /[\t\n\r]/.test(one) || !CONTROL.test(one)).map((one) => (SPACE.test(one) ? " " : one));
    if (chinese) letters = letters.map((one) => (CHINESE.test(one) ? ` ${one} ` : one));
    let text = letters.join("");
    if (strip ?? lowercase) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    if (lowercase) text = [...text].map((one) => one.toLowerCase()).join("");
    return text.match(/[!-/:-@[-`{-~\p{P}]|[^!-/:-@[-`{-~\p{P}\p{White_Space}]+/gu) ?? [];
  }

  /* The longest known pieces from left to right. */
  split(part) {
    const letters = [...part];
    if (letters.length > MAX_CHARACTERS) return [this.unknown];
    const found = [];
    for (let start = 0; start < letters.length; ) {
      let end = letters.length;
      let id;
      for (; end > start; end--) {
        id = this.vocabulary[(start ? this.prefix : "") + letters.slice(start, end).join("")];
        if (id !== undefined) break;
      }
      if (id === undefined) return [this.unknown];
      found.push(id);
      start = end;
    }
    return found;
  }
}

export class TransformerEncoder {
  static async load({ encoder, pairs }, files) {
    const ort = await import("./onnxruntime/ort.wasm.min.mjs");
    ort.env.wasm.wasmPaths = new URL("./onnxruntime/", import.meta.url).href;
    ort.env.wasm.numThreads = 1; // several need headers that a plain server does not send
    const tokenizer = await files.json("tokenizer.json");
    const graphs = {};
    for (const name of pairs ? ["states", "scores", "output"] : ["scores", "output"]) {
      graphs[name] = await ort.InferenceSession.create(new Uint8Array(await files.buffer(`${name}.onnx`)));
    }
    return Object.assign(new TransformerEncoder(), { ort, settings: encoder, subwords: new WordPieces(tokenizer, encoder.unknown), graphs });
  }

  knows(token) {
    return this.subwords.pieces(token).some((one) => one !== this.settings.unknown);
  }

  async run(graph, inputs) {
    const { Tensor } = this.ort;
    const feeds = {};
    for (const [name, [data, ...dims]] of Object.entries(inputs)) {
      feeds[name] = data instanceof Float32Array ? new Tensor("float32", data, dims) : new Tensor("int64", BigInt64Array.from(data, BigInt), dims);
    }
    const [output] = Object.values(await this.graphs[graph].run(feeds));
    return { data: output.data, dims: output.dims };
  }

  async scoreWords({ tokens }) {
    const { token_weights: unused, ...inputs } = this.layOut(tokens, tokens.map(() => true));
    return (await this.run("scores", inputs)).data;
  }

  async predictFromWords({ tokens }, selected) {
    const weights = Float32Array.from(selected, Number);
    return (await this.run("output", { ...this.layOut(tokens, selected), weights: [weights, tokens.length] })).data;
  }

  async readStates(split) {
    const { token_weights: unused, ...inputs } = this.layOut(split.tokens, split.tokens.map(() => true));
    const { data, dims } = await this.run("states", inputs);
    split.states = [data, ...dims];
  }

  async scorePairs(splits) {
    const { data, dims } = await this.run("scores", { premise: splits[0].states, hypothesis: splits[1].states });
    return Array.from({ length: dims[0] }, (_, i) => data.slice(i * dims[1], (i + 1) * dims[1]));
  }

  async predictFromPairs(splits, pairs) {
    const [m, n] = splits.map(({ tokens }) => tokens.length);
    const weights = new Float32Array(m * n);
    for (const [i, j] of pairs) weights[i * n + j] = 1;
    return (await this.run("output", { premise: splits[0].states, hypothesis: splits[1].states, weights: [weights, m, n] })).data;
  }

  /* The tokens of the visible words in rows that fit the network, with empty positions for others where gaps are kept. */
  layOut(words, visible) {
    const { gaps, room, overlap, prefix, suffix, filler, unselected } = this.settings;
    const pieces = words.map((word) => this.subwords.pieces(word));
    const gap = (k) => (gaps === "kept" || (gaps === "marked" && (k === 0 || visible[k - 1])) ? 1 : 0);
    const sizes = pieces.map((own, k) => (visible[k] ? own.length : gap(k)));
    let total = 0;
    const starts = sizes.map((size) => (total += size) - size);
    const longest = Math.min(Math.max(1, total), room);
    const core = total <= room ? Math.max(total, 1) : room - 2 * overlap;
    const count = Math.max(1, Math.ceil(total / core));
    const width = prefix.length + longest + suffix.length;
    const tokens = new Array(count * width).fill(filler);
    const attended = new Array(count * width).fill(0);
    const weights = new Float32Array(count * width);
    const begins = [];
    for (let row = 0; row < count; row++) {
      const first = starts.findIndex((start) => start >= Math.max(row * core - overlap, 0));
      const begin = starts[first < 0 ? starts.length - 1 : first];
      begins.push(begin);
      const put = (at, ids, isAttended, weight) =>
        ids.forEach((id, k) => ([tokens[row * width + at + k], attended[row * width + at + k], weights[row * width + at + k]] = [id, isAttended, weight]));
      put(0, prefix, 1, 1);
      let end = prefix.length;
      for (const [k, size] of sizes.entries()) {
        if (!size || starts[k] < begin || starts[k] + size > begin + longest) continue;
        const at = prefix.length + starts[k] - begin;
        end = at + size;
        if (visible[k]) put(at, pieces[k], 1, 1);
        else put(at, new Array(size).fill(filler), unselected === "out" ? 0 : 1, 0);
      }
      put(end, suffix, 1, 1);
    }
    const most = Math.max(...pieces.map((own) => own.length));
    const [index, share] = [new Array(words.length * most).fill(0), new Float32Array(words.length * most)];
    for (const [k, own] of pieces.entries()) {
      const row = Math.min(Math.floor(starts[k] / core), count - 1);
      for (let part = 0; visible[k] && part < own.length; part++) {
        index[k * most + part] = row * width + prefix.length + starts[k] - begins[row] + part;
        share[k * most + part] = 1 / own.length;
      }
    }
    const rows = [count, width];
    return { tokens: [tokens, ...rows], attended: [attended, ...rows], token_weights: [weights, ...rows], index: [index, words.length, most], share: [share, words.length, most] };
  }
}
