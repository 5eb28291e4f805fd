import { ChevronDown } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";
import { later } from "../../ui/later.tsx";
import { model } from "../composer/mode.ts";
import type { Offer } from "../composer/offer.ts";
import { onOpenPicker } from "./open.ts";

const Picker = later(() => import("./picker.tsx"), "above");

/** Name of the current model or agent; opens the picker. */
export function PickerButton({ offer }: { offer: Offer | undefined }) {
  const [isOpen, setOpen] = useState(false);
  const chosen = useSyncExternalStore(model.subscribe, model.get);
  useEffect(() => onOpenPicker(() => setOpen(true)), []);
  if (offer === undefined) return null;
  const name = chosen || offer.model;
  // An agent with the name of its model, or the default one, needs no label of its own.
  const isPlain = chosen !== "" || offer.agent === "default" || offer.model.includes(offer.agent);
  return (
    <>
      <button
        type="button"
        className="picker-button"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(true)}
      >
        <span>{isPlain ? name : `${offer.agent} · ${name}`}</span>
        <ChevronDown aria-hidden size={14} />
      </button>
      {isOpen && <Picker offer={offer} close={() => setOpen(false)} />}
    </>
  );
}
