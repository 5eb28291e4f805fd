import type { Media } from "@throughline/client";
import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";

/** Types that a browser draws without running anything. */
const DRAWN = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

/** A picture or a sound of the conversation, inline or as a file of the server. */
export function MediaView({
  media,
  className,
}: {
  media: Partial<Media> & { media_type: string };
  className?: string;
}) {
  const words = useWords();
  const url = useContent(media);
  const { media_type } = media;
  if (url === undefined) return <div className={`h-24 w-32 rounded-card bg-sunken ${className ?? ""}`} />;
  if (DRAWN.test(media_type)) {
    return (
      <img src={url} alt={words.picture} className={`max-h-80 max-w-full rounded-card ${className ?? ""}`} />
    );
  }
  if (media_type.startsWith("audio/")) {
    // biome-ignore lint/a11y/useMediaCaption: a transcript is next to it, if there is one
    return <audio controls src={url} aria-label={words.sound} />;
  }
  return (
    <a href={url} download className="text-accent underline">
      {media_type}
    </a>
  );
}

function useContent({
  media_type,
  data,
  file_id,
}: Partial<Media> & { media_type: string }): string | undefined {
  const client = useClient();
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (data !== undefined) {
      setUrl(`data:${media_type};base64,${data}`);
      return undefined;
    }
    if (file_id === undefined) return undefined;
    const leave = new AbortController();
    let made: string | undefined;
    client
      .call("GET /v1/files/{file_id}/content", { path: { file_id }, signal: leave.signal })
      .then((content) => {
        made = URL.createObjectURL(content);
        setUrl(made);
      })
      // A deleted file is shown as empty.
      .catch(() => undefined);
    return () => {
      leave.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [client, media_type, data, file_id]);
  return url;
}
