// Extensions of GitHub and of models: a text and HTML with the same visible text.

export const OWN_EXAMPLES: readonly (readonly [string, string])[] = [
  ["| a | b |\n| - | - |\n| c | d |", "<table><tr><th>a<th>b<tr><td>c<td>d</table>"],
  ["| x |\n| - |\n| a `\\|` b |", "<table><tr><th>x<tr><td>a | b</table>"],
  [
    "| a | b |\n| - | - |\n| one |\n| 1 | 2 | 3 |",
    "<table><tr><th>a<th>b<tr><td>one<td><tr><td>1<td>2</table>",
  ],
  ["| a | b |\n| - |\n| c |", "<p>| a | b |\n| - |\n| c |</p>"],
  ["| a |\n| - |\n| one<br>two |", "<table><tr><th>a<tr><td>one\ntwo</table>"],
  ["- [ ] open\n- [x] done\n  - [ ] below", "<ul><li>open<li>done<ul><li>below</ul></ul>"],
  ["- [x] loose\n\n- [ ] too", "<ul><li>loose<li>too</ul>"],
  ["~~gone~~ text", "<p><del>gone</del> text</p>"],
  ["H~2~O is about ~20 and ~/home", "<p>H<sub>2</sub>O is about ~20 and ~/home</p>"],
  ["x^2^ and 2^10 ^ 3", "<p>x<sup>2</sup> and 2^10 ^ 3</p>"],
  ["www.example.org/help, see.", '<p><a href="#">www.example.org/help</a>, see.</p>'],
  ["https://example.org/a_b_c).", "<p>https://example.org/a_b_c).</p>"],
  ["me@example.org", "<p>me@example.org</p>"],
  ["Text[^1] here.\n\n[^1]: The note.", "<p>Text<sup>1</sup> here.</p><p>The note.</p>"],
  ["No note [^x] here, and [^abc] neither.", "<p>No note [^x] here, and [^abc] neither.</p>"],
  ["> [!NOTE]\n> Read **this**.", "<blockquote><p>Read this.</p></blockquote>"],
  ["> [!WHAT]\n> Read.", "<blockquote><p>[!WHAT]\nRead.</p></blockquote>"],
  ["Press <kbd>Ctrl</kbd>+<KBD>C</KBD>.", "<p>Press Ctrl+C.</p>"],
  ["<kbd>open and </sub>", "<p>&lt;kbd>open and &lt;/sub></p>"],
  ['<kbd onclick="x">k</kbd>', '<p>&lt;kbd onclick="x">k&lt;/kbd></p>'],
  [
    "<details>\n<summary>More **words**</summary>\n\n- one\n\n</details>\n\nafter",
    "<details><summary>More words</summary><ul><li>one</ul></details><p>after</p>",
  ],
  ["<script>alert(1)</script>", "<p>&lt;script>alert(1)&lt;/script></p>"],
  ["1. a\n   - b\n     1. c\n\n        d\n2. e", "<ol><li>a<ul><li>b<ol><li>c<p>d</p></ol></ul><li>e</ol>"],
];
