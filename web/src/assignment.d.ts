import { Axes } from "./messages";
import { Four } from "./hands";

export interface Device { values: number[]; count: number; standard: boolean }
export type Joysticks = [string, number][][]; // lever and direction of each axis of two joysticks
export function combined(devices: Device[], pattern: Axes | null, joysticks: Joysticks | undefined): Four;
