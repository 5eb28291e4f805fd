import { Component, type ReactNode } from "react";
import { useWords } from "../i18n/use.ts";

/** Shows errors of rendering in place of the failed part. Parts that cannot be loaded are handled by `later`. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { failure?: unknown }> {
  override state: { failure?: unknown } = {};

  static getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure };
  }

  override render(): ReactNode {
    return "failure" in this.state ? <Failed failure={this.state.failure} /> : this.props.children;
  }
}

function Failed({ failure }: { failure: unknown }) {
  const words = useWords();
  return (
    <div role="alert" className="m-auto max-w-md p-4 text-center">
      <p>{words.viewFailed}</p>
      <p className="my-2 font-mono text-[12.5px] text-muted">{String(failure)}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {words.reload}
      </button>
    </div>
  );
}
