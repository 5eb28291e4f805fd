// The words of whoever is not in yet: they are fetched with the form. As in `i18n`, what one language lacks does not compile.

import { lazyWords } from "../i18n/use.ts";

const en = {
  signInTitle: "Who are you?",
  signInHow:
    "The link that `throughline serve` prints signs this browser in. A key does so, too: `throughline keys create --name laptop`.",
  key: "Key",
  signIn: "Come in",
  linkRefused: "This link was used already, or is too old. Each start of the server prints another one.",
  keyRefused: "The server does not take this key (any more).",
};

export type SignInWords = typeof en;

const zh: SignInWords = {
  signInTitle: "请先登录",
  signInHow:
    "打开 `throughline serve` 打印的链接即可登录这个浏览器；也可以用密钥：`throughline keys create --name laptop`。",
  key: "密钥",
  signIn: "进入",
  linkRefused: "这个链接已经用过或已过期。服务器每次启动都会打印一个新的。",
  keyRefused: "服务器不接受（或不再接受）这个密钥。",
};

export const useSignInWords = lazyWords(en, zh);
