// Texts of every view and dialog that is loaded on demand, for languages that come as one file. Only types.

import type { TextRuleWords } from "../agents/text-words.ts";
import type { AgentWords } from "../agents/words.ts";
import type { CitationWords } from "../chat/blocks/citation-words.ts";
import type { ErrorWords } from "../chat/blocks/error-words.ts";
import type { ThinkingWords } from "../chat/blocks/thinking-words.ts";
import type { ApprovalWords } from "../chat/card/approval-words.ts";
import type { ChangeWords } from "../chat/card/changes-words.ts";
import type { FileWords } from "../chat/composer/files/words.ts";
import type { MenuWords } from "../chat/composer/menu-words.ts";
import type { NoticeWords } from "../chat/conversations/notice-words.ts";
import type { ListWords } from "../chat/conversations/words.ts";
import type { FirstWords } from "../chat/first/words.ts";
import type { PickerWords } from "../chat/picker/words.ts";
import type { PromptWords } from "../chat/prompts/words.ts";
import type { ConnectWords } from "../connect/words.ts";
import type { HistoryWords } from "../history/words.ts";
import type { MetricsWords } from "../metrics/words.ts";
import type { SignInWords } from "../session/words.ts";
import type { PeopleWords } from "../settings/people-words.ts";
import type { SettingsWords } from "../settings/words.ts";
import type { LargeWords } from "../shared/call-card/large-words.ts";
import type { SchemaFormWords } from "../shared/schema-form/words.ts";
import type { SharedWords } from "../sharing/words.ts";
import type { RecordedWords } from "../tester/recorded-words.ts";
import type { TesterWords } from "../tester/words.ts";
import type { FactWords } from "../ui/model-facts.ts";

export interface ViewWords {
  agents: AgentWords;
  changes: ChangeWords;
  connect: ConnectWords;
  conversations: ListWords;
  temporary: NoticeWords;
  approvals: ApprovalWords;
  citations: CitationWords;
  errors: ErrorWords;
  thinking: ThinkingWords;
  shared: SharedWords;
  facts: FactWords;
  files: FileWords;
  first: FirstWords;
  history: HistoryWords;
  large: LargeWords;
  menu: MenuWords;
  metrics: MetricsWords;
  people: PeopleWords;
  picker: PickerWords;
  prompts: PromptWords;
  recorded: RecordedWords;
  schemaForm: SchemaFormWords;
  settings: SettingsWords;
  signIn: SignInWords;
  tester: TesterWords;
  textRules: TextRuleWords;
}
