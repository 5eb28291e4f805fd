//! Texts and the sentences that a voice gets of them, in both languages.

use throughline_speech::{
    INLINE_CODE_CHARS_MAX, LINE_LEAD_CHARS_MAX, SentenceLimits, SpokenSentence, sentences,
};

#[track_caller]
fn check(markdown: &str, expected: &[&str]) {
    // The early cut of the first sentence has a separate test.
    let limits = SentenceLimits { first_clause_width_min: usize::MAX, ..SentenceLimits::default() };
    check_with(limits, markdown, expected);
}

#[track_caller]
fn check_with(limits: SentenceLimits, markdown: &str, expected: &[&str]) {
    let found = sentences(markdown, limits);
    let texts: Vec<&str> = found.iter().map(|sentence| sentence.text.as_str()).collect();
    assert_eq!(texts, expected, "{markdown:?}");
}

#[test]
fn sentences_end_at_punctuation_and_paragraph_breaks() {
    check("It rains. Take a coat! Or not? Well…", &["It rains.", "Take a coat!", "Or not?", "Well…"]);
    check("Really?! Yes.", &["Really?!", "Yes."]);
    check("He said \"Go.\" Then he left.", &["He said \"Go.\"", "Then he left."]);
    check("He said. \"Go now.\" Then", &["He said.", "\"Go now.\"", "Then"]);
    check("“Really?” she asked. (It was.) Yes.", &["“Really?” she asked.", "(It was.)", "Yes."]);
    check("I thought... maybe. Then... Nothing.", &["I thought... maybe.", "Then...", "Nothing."]);
    check("One line\ngoes on. And\non", &["One line goes on.", "And on"]);
    check("One paragraph\n\nanother", &["One paragraph", "another"]);
}

#[test]
fn chinese_sentences_end_without_a_space() {
    check("今天下雨。带伞！好吗？好的", &["今天下雨。", "带伞！", "好吗？", "好的"]);
    check("他说：“走吧！”然后走了。", &["他说：“走吧！”", "然后走了。"]);
    check("他说：“走！”，大家都笑了。", &["他说：“走！”，大家都笑了。"]);
    check("我想……算了。真的？！是的。", &["我想……算了。", "真的？！", "是的。"]);
    check("他说。\"走吧。\"完了。", &["他说。", "\"走吧。\"", "完了。"]);
    check("第一行\n第二行。", &["第一行第二行。"]);
    check("（见附录。）下一句。", &["（见附录。）", "下一句。"]);
    check("你好!世界.好", &["你好!", "世界.", "好"]);
}

#[test]
fn mixed_chinese_and_english_is_cut_by_both_rules() {
    check("请用 Node.js v20.1 运行。It works. 好的。", &["请用 Node.js v20.1 运行。", "It works.", "好的。"]);
    check("共 3.14 元。OK！Next one.", &["共 3.14 元。", "OK！", "Next one."]);
    check("价格是 $5。然后 $10。", &["价格是 $5。", "然后 $10。"]);
}

#[test]
fn full_stops_in_words_and_numbers_do_not_end_sentences() {
    check("Pi is 3.14 and v1.2.3 is out. Yes", &["Pi is 3.14 and v1.2.3 is out.", "Yes"]);
    check("Ask Dr. Wu or Mrs. Li, e.g. today. Bye", &["Ask Dr. Wu or Mrs. Li, e.g. today.", "Bye"]);
    check("J. R. R. Tolkien wrote it. I read it.", &["J. R. R. Tolkien wrote it.", "I read it."]);
    check(
        "Apples, pears, etc. are here. Apples etc. Then go.",
        &["Apples, pears, etc. are here.", "Apples etc.", "Then go."],
    );
    check("See Fig. 3 and No. 5. On Jan. 5 we go.", &["See Fig. 3 and No. 5.", "On Jan. 5 we go."]);
    check("At 5 p.m. we go. At 6 p.m. They come.", &["At 5 p.m. we go.", "At 6 p.m.", "They come."]);
    check("It was I. So what? 1,000.5 it is", &["It was I.", "So what?", "1,000.5 it is"]);
    check("Use example.com or config.toml. Fine", &["Use example.com or config.toml.", "Fine"]);
    check("approx. five of them. ok", &["approx. five of them. ok"]);
}

#[test]
fn lists_headings_and_table_rows_are_separate_sentences() {
    check("# Weather\nIt rains.\n## Later ##\n\nSun", &["Weather", "It rains.", "Later", "Sun"]);
    check("Title\n=====\ntext\n\n---\n\nmore", &["Title", "text", "more"]);
    check("- one\n- two\n  goes on\n* three\n+ four", &["one", "two goes on", "three", "four"]);
    check("1. Open it.\n2. Close it\n10) Go", &["1. Open it.", "2. Close it", "10) Go"]);
    check("1、打开\n2、关闭", &["1、打开", "2、关闭"]);
    check(
        "- [ ] open\n- [x] done\n- nested\n    - deep\n        - deeper",
        &["open", "done", "nested", "deep", "deeper"],
    );
    check("> quoted\n> text\n\nown", &["quoted text", "own"]);
    check("> quoted\nlazy", &["quoted", "lazy"]);
    check("| City | °C |\n|---|:-:|\n| Paris | 22 |\n| 北京 | 31 |", &["City, °C", "Paris, 22", "北京，31"]);
    check("City | Day\n--- | ---\nParis | Monday", &["City, Day", "Paris, Monday"]);
    check("C# and #1 are fine\n\n# C# ##", &["C# and #1 are fine", "C#"]);
}

#[test]
fn markup_is_not_spoken() {
    check(
        "**Bold**, *italic*, ***both***, __under__, ~~struck~~ text",
        &["Bold, italic, both, under, struck text"],
    );
    check("snake_case and 2 * 3 and 2*3 and ~5", &["snake case and 2 × 3 and 2×3 and ~5"]);
    check("a \\*star\\* and snake\\_case", &["a *star* and snake case"]);
    check("&lt;b&gt; &amp; &#20013; &nope; AT&T", &["<b> & 中 &nope; AT&T"]);
    check("soft  \nhard\\\nbreak", &["soft, hard, break"]);
    check("a ≤ b, x < y and y > z", &["a ≤ b, x < y and y > z"]);
}

#[test]
fn code_is_spoken_only_if_it_is_a_short_name() {
    check("Run `npm install` and call `foo_bar()`.", &["Run npm install and call foo bar."]);
    check("``a ` b`` is odd. Next", &["a b is odd.", "Next"]);
    let longest = "x".repeat(INLINE_CODE_CHARS_MAX);
    check(&format!("a `{longest}` b"), &[&format!("a {longest} b")]);
    check(&format!("a `{longest}x` b"), &["a b"]);
    check("Before\n```rust\nfn main() {}\n\n# no\n```\nafter", &["Before", "after"]);
    check("~~~\n```\nno\n~~~\nafter", &["after"]);
    check("````\n```\nno\n```\n````\nafter", &["after"]);
    check("- item\n  ```sh\n  rm -rf /\n  ```\n- next", &["item", "next"]);
    check("> ```\n> no\n> ```\n> yes", &["yes"]);
    check("> ```\n> no\nyes", &["yes"]);
    check("```\nnever closed", &[]);
    check("```inline``` code", &["inline code"]);
    check("text\n\n    indented code\n\nmore", &["text", "more"]);
    check("An unmatched ` is nothing. Go", &["An unmatched is nothing.", "Go"]);
    check("`https://example.com/x` is one", &["is one"]);
}

#[test]
fn link_texts_are_spoken_and_urls_are_not() {
    check("See [the **docs**](https://example.com/a_(b) \"Title\"). Bye", &["See the docs.", "Bye"]);
    check("See https://example.com/x?y=z. Then www.example.com, ok", &["See.", "Then, ok"]);
    check("见https://example.com/路。好", &["见路。", "好"]);
    check("<https://example.com> and <me@example.com>!", &["and!"]);
    check("![a chart](data:image/png;base64,AAAA) here", &["a chart here"]);
    check(&format!("![x](data:image/png;base64,{}) here", "A".repeat(5_000)), &["x here"]);
    check("[ref][1] and [other]\n\n[1]: https://example.com\n[other]: <x> 'T'", &["ref and other"]);
    check(
        "[Note]: this is text. [Hint](read it twice) now",
        &["Note: this is text.", "Hint(read it twice) now"],
    );
    check("(https://example.com) it is", &["it is"]);
    check("He [sic] said (so).", &["He sic said (so)."]);
}

#[test]
fn citations_formulas_and_emoji_are_not_spoken() {
    check("Known[^1] facts [2], [3, 4].\n\n[^1]: A note.", &["Known facts,.", "A note."]);
    check("来源【12†source】可靠。【注意】看", &["来源可靠。", "【注意】看"]);
    check("If $n$ is $x^2 + 1$, then $$\\int_0^1 x$$ holds.", &["If n is, then holds."]);
    check("\\(a\\) and \\[ b \\\\[2pt] c \\] end", &["and end"]);
    check("\\begin{align}\nx &= 1\n\\end{align}\ndone", &["done"]);
    check("$$\nx\n\nGo on", &["Go on"]);
    check("It costs $5 and $10, or $5-$10. $PATH", &["It costs $5 and $10, or $5-$10.", "PATH"]);
    check("Done ✅ 🎉👩‍🔬 :tada: great 👍🏽!", &["Done great!"]);
    check("at 10:30:45, ratio 3:2: ok", &["at 10:30:45, ratio 3:2: ok"]);
    check("A → B", &["A, B"]);
    check("👍", &[]);
    check("— … ()", &[]);
}

#[test]
fn tags_and_tool_calls_are_not_spoken() {
    check("a <b class=\"x\">bold</b> word<br>next <p>para</p>", &["a bold word, next", "para"]);
    check("<script>\nalert(1)\n\n```\n</script>after", &["after"]);
    check("<!-- no\n\n- no -->yes", &["yes"]);
    check("<think>no. no.</think>Yes.", &["Yes."]);
    check("a <b and c. Then, if x <y, go", &["a <b and c.", "Then, if x <y, go"]);
    let calls = [
        "<tool_call>\n{\"name\": \"x\",\n\n\"arguments\": {}}\n</tool_call>",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」x「末」\n\nno\n<<<[END_TOOL_REQUEST]>>>",
        "<function_calls><invoke name=\"x\"><parameter name=\"a\">no</parameter></invoke></function_calls>",
        "<invoke name=\"x\">no</invoke>",
        "<function=x><parameter=a>no</parameter></function>",
        "<|tool_calls_section_begin|>no<|tool_call_begin|>no<|tool_call_end|><|tool_calls_section_end|>",
        "<｜tool▁calls▁begin｜>no\n\nno<｜tool▁calls▁end｜>",
        "<｜DSML｜function_calls>no</｜DSML｜function_calls>",
        "```tool_code\nno()\n```",
        "[TOOL_CALLS][{\"name\": \"no\"}]",
        "<<<DailyNoteStart>>>\nMaid: no\n<<<DailyNoteEnd>>>",
    ];
    for call in calls {
        check(&format!("Before.\n\n{call}\n\nAfter."), &["Before.", "After."]);
        // Cut off in the middle: no word of it.
        let half: String = call.chars().take(call.chars().count() / 2).collect();
        check(&format!("Before.\n\n{half}"), &["Before."]);
    }
}

#[test]
fn first_sentence_is_cut_at_an_early_clause() {
    let limits = SentenceLimits::default();
    check_with(
        limits,
        "The weather in Paris today, as far as I know, is fine, isn't it? Yes, it is, really it is.",
        &["The weather in Paris today,", "as far as I know, is fine, isn't it?", "Yes, it is, really it is."],
    );
    check_with(
        limits,
        "今天北京天气非常不错，适合出门，明天呢？也是，真的。",
        &["今天北京天气非常不错，适合出门，", "明天呢？", "也是，真的。"],
    );
    check_with(limits, "Yes, it is.", &["Yes, it is."]);
    check_with(limits, "That comes to about 1,000 euros,", &["That comes to about 1,000 euros,"]);
}

#[test]
fn sentence_width_is_limited() {
    let limits = SentenceLimits { first_clause_width_min: usize::MAX, sentence_width_max: 40 };
    check_with(
        limits,
        "one two three four five six seven eight nine ten eleven",
        &["one two three four five six seven eight", "nine ten eleven"],
    );
    check_with(
        limits,
        "one two three four five six, seven eight nine ten eleven",
        &["one two three four five six,", "seven eight nine ten eleven"],
    );
    check_with(limits, &"字".repeat(45), &[&"字".repeat(20), &"字".repeat(20), &"字".repeat(5)]);
    check_with(limits, &"x".repeat(81), &[&"x".repeat(40), &"x".repeat(40), "x"]);
    // At least one word fits, for any setting.
    let least = SentenceLimits { sentence_width_max: 0, ..limits };
    check_with(least, &"x".repeat(21), &[&"x".repeat(SentenceLimits::SENTENCE_WIDTH_MIN), "x"]);
    assert_eq!(
        SentenceLimits::default(),
        SentenceLimits { first_clause_width_min: 24, sentence_width_max: 280 }
    );
}

#[test]
fn line_of_marks_is_buffered_up_to_a_limit() {
    check(&format!("{}\nafter", "-".repeat(LINE_LEAD_CHARS_MAX)), &["after"]);
    check(&format!("{}x -- y\n\nafter", "=".repeat(5_000)), &["x, y", "after"]);
}

/// The source text of a sentence.
#[track_caller]
fn source<'t>(markdown: &'t str, sentence: &SpokenSentence) -> &'t str {
    &markdown[sentence.source_bytes.clone()]
}

#[test]
fn sentence_maps_to_its_source_bytes() {
    let text = "# Title\n\nIt is **22 °C** in [Paris](https://x.org). Go on?";
    let found = sentences(text, SentenceLimits::default());
    let sources: Vec<&str> = found.iter().map(|sentence| source(text, sentence)).collect();
    assert_eq!(sources, ["Title", "It is **22 °C** in [Paris](https://x.org).", "Go on?"]);

    let sentence = &found[1];
    let word = sentence.text.find("Paris").expect("spoken");
    assert_eq!(&text[sentence.source_byte_at(word)..][..5], "Paris");
    assert_eq!(sentence.source_byte_at(0), sentence.source_bytes.start);
    assert_eq!(sentence.source_byte_at(usize::MAX / 2), sentence.source_bytes.end);
}
