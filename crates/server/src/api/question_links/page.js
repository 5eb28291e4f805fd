// The question that a link in a chat leads to. What models and tools wrote is only ever text here.
"use strict";
const $ = (id) => document.getElementById(id);
const chinese = (navigator.languages?.[0] ?? navigator.language).toLowerCase().startsWith("zh");
const words = chinese
  ? { asks: "聊天中的助手想运行：", yes: "已同意。回到聊天，发送下一条消息即可看到结果。", no: "已拒绝。回到聊天，发送下一条消息即可继续。", failed: "无法连接服务器，请重试。" }
  : { asks: "The assistant in your chat wants to run this:", yes: "Approved. Go back to the chat: your next message there shows what came of it.", no: "Denied. Go back to the chat: it goes on with your next message there.", failed: "The server cannot be reached. Try again." };
document.documentElement.lang = chinese ? "zh-Hans" : "en";
for (const id of ["approve", "deny"]) $(id).textContent = chinese ? $(id).dataset.zh : $(id).dataset.en;

// It goes from the address at once: addresses are kept and shared.
const link = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

async function ask(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) {
    const error = new Error([answer.error.message, answer.error.remedy].filter(Boolean).join(". "));
    // Nothing was used up: the link is good for another try.
    error.again = response.status === 503;
    throw error;
  }
  return answer;
}
const say = (text) => { $("state").textContent = text; };
const failed = (error) => say(error instanceof TypeError ? words.failed : error.message);

async function look() {
  const { questions } = await ask("/v1/question-links", { link });
  for (const { question, arguments: text } of questions) {
    const [heading, shown] = [document.createElement("h2"), document.createElement("pre")];
    heading.textContent = question;
    shown.textContent = text;
    $("questions").append(heading, shown);
  }
  say(words.asks);
  $("answers").hidden = false;
}

async function answer(decision, done) {
  $("answers").hidden = true;
  try {
    await ask("/v1/question-links/answer", { link, decision });
    say(done);
  } catch (error) {
    failed(error);
    if (error instanceof TypeError || error.again) $("answers").hidden = false;
  }
}
$("approve").addEventListener("click", () => answer("approve", words.yes));
$("deny").addEventListener("click", () => answer("deny", words.no));
look().catch(failed);
