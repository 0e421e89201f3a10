// Layout: the panel opens and closes, and the view is centred in the part that panels leave free.

import { by } from "./dom";
import { View } from "./view";

const SHORT = 560; // px, as in the style sheet: below it, the next step is shown between the sticks

export class Layout {
  private readonly header = document.querySelector("header")!;

  constructor(private readonly view: () => View | null) {
    by("panel-toggle").onclick = () => this.panel(by("panel").classList.contains("away"));
    this.panel(innerWidth > 900 && innerHeight >= SHORT);
    addEventListener("resize", () => this.fit());
    const watch = new ResizeObserver(() => this.fit());
    watch.observe(this.header);
    watch.observe(by("coach"));
    watch.observe(by("sliders"));
  }

  private panel(open: boolean): void {
    by("panel").classList.toggle("away", !open);
    document.body.classList.toggle("with-panel", open);
    by("panel-toggle").setAttribute("aria-expanded", String(open));
    this.fit();
  }

  fit(): void {
    const top = this.header.getBoundingClientRect().bottom, box = (id: string) => by(id).getBoundingClientRect();
    const panel = box("panel"), coach = box("coach"), beside = panel.width > 0 && panel.left > innerWidth / 2, left = coach.width > 0 && coach.top < top + 40 && coach.right < innerWidth / 2;
    // Height of the elements across the bottom.
    const tops = [beside || !panel.width ? Infinity : panel.top, left || !coach.width || innerHeight < SHORT ? Infinity : coach.top, by("sliders").hidden ? Infinity : box("sliders").top];
    this.view()?.cover({ left: left ? coach.right : 0, right: beside ? innerWidth - panel.left : 0, top, below: Math.max(0.1 * innerHeight, innerHeight - Math.min(...tops)) });
  }
}
