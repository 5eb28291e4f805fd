// The words of signing in, fetched with the form.

import { lazyWords } from "../i18n/use.ts";

const en = {
  signInTitle: "Sign in to Throughline",
  signInHow:
    "Open the link that `throughline serve` prints, or enter a key. To create a key: `throughline keys create --name laptop`.",
  key: "Key",
  signIn: "Sign in",
  linkRefused: "This link was already used or has expired. The server prints a new one each time it starts.",
  keyRefused: "This key is invalid or was revoked.",
};

export type SignInWords = typeof en;

const zh: SignInWords = {
  signInTitle: "登录 Throughline",
  signInHow:
    "打开 `throughline serve` 打印的链接，或输入密钥。创建密钥：`throughline keys create --name laptop`。",
  key: "密钥",
  signIn: "登录",
  linkRefused: "这个链接已使用或已过期。服务器每次启动都会打印新链接。",
  keyRefused: "密钥无效或已被吊销。",
};

export const useSignInWords = lazyWords(en, zh);
