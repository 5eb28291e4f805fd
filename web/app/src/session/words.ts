// Texts of the sign-in page, loaded with it.

import { lazyWords } from "../i18n/use.ts";

const en = {
  signInTitle: "Sign in to Throughline",
  waysIn: [
    "Open the link that `throughline serve` printed when it started. It works once.",
    "If the link was used, create a key on the server, without restarting it: `throughline keys create --name laptop`. Enter it here.",
    "If somebody else runs the server, ask them for a key.",
  ],
  key: "Key",
  signIn: "Sign in",
  signInWith: (name: string) => `Sign in with ${name}`,
  linkRefused:
    "This link was already used or has expired. Enter a key instead, or restart the server for a new link.",
  keyRefused: "This key is invalid or was revoked.",
};

export type SignInWords = typeof en;

const zh: SignInWords = {
  signInTitle: "登录 Throughline",
  waysIn: [
    "打开 `throughline serve` 启动时打印的链接。链接只能用一次。",
    "链接已用过时，在服务器上创建密钥即可，无需重启：`throughline keys create --name laptop`，然后在此输入。",
    "服务器由他人运行时，请向对方索取密钥。",
  ],
  key: "密钥",
  signIn: "登录",
  signInWith: (name: string) => `使用 ${name} 登录`,
  linkRefused: "这个链接已使用或已过期。请改为输入密钥，或重启服务器获取新链接。",
  keyRefused: "密钥无效或已被吊销。",
};

export const useSignInWords = lazyWords("signIn", en, zh);
