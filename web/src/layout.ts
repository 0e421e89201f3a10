// What lies where: the panel opens and closes, and the view's middle is the middle of what panels leave free.

import { by } from "./dom";
import { View } from "./view";

export class Layout {
  private readonly header = document.querySelector("header")!;

  constructor(private readonly view: () => View | null) {
    by("panel-toggle").onclick = () => this.panel(by("panel").classList.contains("away"));
    this.panel(innerWidth > 900);
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
    const top = this.header.getBoundingClientRect().bottom;
    document.body.style.setProperty("--header", `${top}px`);
    const open = !by("panel").classList.contains("away"), panel = by("panel").getBoundingClientRect(), coach = by("coach").getBoundingClientRect();
    const right = open && panel.width < innerWidth / 2, beside = coach.width < innerWidth / 2; // else they lie across, below
    const sliders = by("sliders").hidden ? innerHeight : by("sliders").getBoundingClientRect().top;
    const below = open && !right ? innerHeight - Math.min(panel.top, sliders) : !beside ? innerHeight - coach.top : Math.max(innerHeight - sliders, 0.1 * innerHeight);
    this.view()?.cover({ left: beside ? coach.right : 0, right: right ? innerWidth - panel.left : 0, top, below });
  }
}
