// Whether the next conversation is temporary: neither listed nor searched, and deleted when it is closed. Framework-free.

import { Variable } from "../../store.ts";

export const temporary = new Variable(false);
