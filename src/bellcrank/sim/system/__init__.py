"""Systems: mechanism, actuators, forces, prescribed motions and control as one first-order system."""
